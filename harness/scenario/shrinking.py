"""A failure made small: parts of its scenario and decisions are taken away as long as the same thing falls.

It ends when taking away any one part, or letting any one choice go on, makes the scenario pass; or when the time is
over, with what it has. A smaller scenario meets other choices, so where the old list shows nothing any more a few
drawn ones are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from harness.errors import UserInputError
from harness.scenario.draws import Draws
from harness.scenario.failure import Failure, failure_of, nonzero
from harness.scenario.parts import SAID_ABOUT_FILES, groups, parts, runs, size
from harness.scenario.production import Report, play
from harness.scenario.signature import EXPECTATION, Signature, chains_lost, falls_alike, signatures
from harness.scenario.trees import Tree, fits
from harness.world.model import Calm, Decision, Decisions, Listed, Seeded

DRAWN_TRIES = 6
FRESH_TRIES = 20
FEW_CHOICES = 3
PROGRESS_RUNS = 50


class Progress(NamedTuple):
    """How far it is: runs so far, parts and choices that are left."""

    runs: int
    parts: int
    choices: int
    steps: int


class Shrunk(NamedTuple):
    """What is left. `failure.minimal` tells whether the end was reached; `cost` names the accepted holes that cost a
    chain in its run as in the one that was made smaller.
    """

    failure: Failure
    runs: int
    before: Progress
    after: Progress
    cost: frozenset[str] = frozenset()


class OutOfTime(Exception):  # noqa: N818 - the expected end of a short budget
    """The time is over."""


class DoesNotFailError(Exception):
    """The failure does not show with the code as it is."""


class Choice(NamedTuple):
    """The failure with what is kept of it as its signature, and what else fell in its run, the gravest first."""

    failure: Failure
    others: tuple[Signature, ...]


def chosen(failure: Failure, word: str | None) -> Choice:
    """What of a failure is to be kept: what its file says, or the gravest of what `word` means (a rule, or whom it
    fell on). The known-bad variant that it names is put in place by the caller.

    Raises DoesNotFailError where nothing falls, and UserInputError where nothing is called so.
    """
    scenario = fits(failure.scenario)
    if scenario is None:
        raise DoesNotFailError(str(failure.signature))
    values = [decision.value for decision in failure.decisions]
    fallen = signatures(play(scenario, failure.runtime, Listed(values), seed=failure.seed))
    if not fallen:
        raise DoesNotFailError(str(failure.signature))
    kept = failure.signature if word is None else next((each for each in fallen if each.is_called(word)), None)
    if kept is None:
        there = "; ".join(f"{each.rule}{f' on {each.who}' if each.who else ''}" for each in fallen)
        raise UserInputError(f"--keep {word}: nothing that fell is called so", fix=f"There is: {there}.")
    return Choice(failure._replace(signature=kept), tuple(each for each in fallen if each != kept))


class Shrinker:
    """One shrinking. `is_over` tells when to stop, `tell` hears of progress, `keep` gets each smaller failure.

    `accepts` may refuse a smaller scenario (or these choices of it) that fails: where the right rule falls too, it
    says nothing of the wrong one any more (a premise of what it expects was taken away).

    Without a wrong rule an expectation that something happens falls wherever nothing does. Where the run lost token
    chains, that is what it came of: they stay lost.
    """

    def __init__(
        self,
        failure: Failure,
        *,
        is_over: Callable[[], bool],
        tell: Callable[[Progress], None] = lambda _: None,
        keep: Callable[[Failure], None] = lambda _: None,
        accepts: Callable[[Tree, Sequence[int]], bool] = lambda *_: True,
    ) -> None:
        self.failure, self.is_over, self.tell, self.keep, self.accepts = failure, is_over, tell, keep, accepts
        self.tree: Tree = failure.scenario
        self.values: list[int] = [decision.value for decision in failure.decisions]
        self.cost: frozenset[str] = frozenset()
        self.runs = 0
        self.best = failure
        self.steps = 0

    def run(self) -> Shrunk:
        """Shrink as far as the time goes. Raises DoesNotFailError."""
        report = self._fails(self.tree, Listed(self.values))
        if report is None:
            raise DoesNotFailError(str(self.failure.signature))
        if self.failure.signature.kind == EXPECTATION and self.failure.variant is None:
            self.cost = chains_lost(report)
        self._take(self.tree, report)
        before = self._progress()
        minimal = False
        try:
            self._plain_head()
            minimal = self._until_nothing_changes()
        except OutOfTime:
            minimal = False
        self.best = self.best._replace(minimal=minimal)
        self.keep(self.best)
        return Shrunk(self.best, self.runs, before, self._progress(), self.cost)

    def _until_nothing_changes(self) -> bool:
        while self._cut_parts() | self._calm_choices():
            pass
        return True

    # --- one try

    def _fails(self, tree: Tree, decisions: Decisions) -> Report | None:
        """The report of a run in which the same falls; None otherwise. Raises OutOfTime."""
        if self.runs and self.is_over():
            raise OutOfTime
        scenario = fits(tree)
        if scenario is None:
            return None
        self.runs += 1
        if self.runs % PROGRESS_RUNS == 0:
            self.tell(self._progress())
        report = play(scenario, self.failure.runtime, decisions, seed=self.failure.seed)
        return report if falls_alike(report, self.failure.signature, self.cost) else None

    def _take(self, tree: Tree, report: Report) -> None:
        """This is the failure from now on. A calm run asked nobody: it is written down with its choices, all zero."""
        if not report.decisions:
            report = self._fails(tree, Listed(())) or report
        self.tree, self.steps = tree, report.steps
        self.values = _values(report)
        made = failure_of(report, seed=self.failure.seed, variant=self.failure.variant, tree=tree)
        self.best = made._replace(signature=self.failure.signature)
        self.keep(self.best)

    def _progress(self) -> Progress:
        return Progress(self.runs, size(self.tree), sum(1 for _ in nonzero(self.best.decisions)), self.steps)

    # --- parts

    def _plain_head(self) -> None:
        """The one runtime, and nothing of what the file says of itself."""
        head = {key: value for key, value in self.tree.items() if key not in SAID_ABOUT_FILES}
        head["runtime"] = self.failure.runtime
        self._try_tree(head)

    def _cut_parts(self) -> bool:
        """One pass over all parts, whole tables first; whether anything went."""
        changed = False
        for group in list(groups(self.tree)):
            changed |= self._try_tree(group.without(self.tree))
        index = 0
        while index < len(candidates := [*parts(self.tree), *runs(self.tree)]):
            if self._try_tree(candidates[index].without(self.tree)):
                changed = True
            else:
                index += 1
        return changed

    def _try_tree(self, tree: Tree) -> bool:
        for decisions in self._ways():
            report = self._fails(tree, decisions)
            if report is not None and self.accepts(tree, _values(report)):
                self._take(tree, report)
                return True
        return False

    def _ways(self) -> Iterator[Decisions]:
        """What a smaller scenario is tried with: nothing, what there was, and drawn lists where choices matter."""
        yield Calm()
        if any(self.values):
            yield Listed(self.values)
            draws = Draws("shrink", self.failure.seed)
            yield from (Seeded(draws.seed(str(number)), fault=0.3) for number in range(DRAWN_TRIES))

    # --- decisions

    def _calm_choices(self) -> bool:
        """Let choices go on: all, then ever smaller chunks, then each lower; whether anything went."""
        if not any(self.values):
            return False
        changed = self._try_values([]) or self._drawn_afresh()
        size_of_chunk = len(self.values)
        while size_of_chunk := size_of_chunk // 2:
            changed |= self._calm_chunks(size_of_chunk)
        return self._lower_each() or changed

    def _drawn_afresh(self) -> bool:
        """Lists in which hardly anybody does anything but go on: what many choices show, few may show too."""
        draws, changed = Draws("afresh", self.failure.seed), False
        for number in range(FRESH_TRIES):
            drawn = Seeded(draws.seed(str(number)), run=0.02, stall=0.01, fault=0.4)
            changed |= sum(map(bool, self.values)) > FEW_CHOICES and self._try(drawn)
        return changed

    def _calm_chunks(self, length: int) -> bool:
        """Zeros for each chunk of that many choices that are not; chunks of one come down to single choices."""
        changed, first = False, 0
        while first < len(chosen := [index for index, value in enumerate(self.values) if value]):
            if length > len(chosen):
                return changed
            chunk = set(chosen[first : first + length])
            if self._try_values([0 if index in chunk else value for index, value in enumerate(self.values)]):
                changed = True
            elif length > 1 or not self._try_values(_deleted(self.values, chosen[first])):
                first += length
        return changed

    def _lower_each(self) -> bool:
        changed = False
        for index in range(len(self.values)):
            while index < len(self.values) and self.values[index] > 1:
                lower = [*self.values[:index], self.values[index] - 1, *self.values[index + 1 :]]
                if not self._try_values(lower):
                    break
                changed = True
        return changed

    def _try_values(self, values: Sequence[int]) -> bool:
        return self._try(Listed(values) if any(values) else Calm())

    def _try(self, decisions: Decisions) -> bool:
        report = self._fails(self.tree, decisions)
        if report is None or not _is_smaller(report.decisions, self.best.decisions):
            return False
        if not self.accepts(self.tree, _values(report)):
            return False
        self._take(self.tree, report)
        return True


def _values(report: Report) -> list[int]:
    return [decision.value for decision in report.decisions]


def _deleted(values: Sequence[int], index: int) -> list[int]:
    return [*values[:index], *values[index + 1 :]]


def _is_smaller(decisions: Sequence[Decision], than: Sequence[Decision]) -> bool:
    return _weight(decisions) < _weight(than)


def _weight(decisions: Sequence[Decision]) -> tuple[int, int, int]:
    """Fewer choices come first, then lower ones, then earlier ones."""
    chosen = list(nonzero(decisions))
    return len(chosen), sum(decisions[index].value for index in chosen), sum(chosen)
