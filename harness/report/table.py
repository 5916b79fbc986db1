"""The table of entries: those with the same outcomes share a row, so that a thousand entries stay readable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from harness.gate.model import Judgement, Need, Outcome, State
from harness.report.safety import NO_NAME, shorten, visible

MAXIMUM_ROWS = 50
"""More rows than that are cut, plain ones first."""

MAXIMUM_NAMES = 12
"""How many names one "same as" line lists."""

LONGEST_LABEL = 48
NO_NEED = "-"

_PROBLEMS = frozenset({State.FAILS, State.SKIPPED, State.NOT_WRITTEN, State.KILLS_RUN})
_SMALLEST_FAMILY = 3
_SMALLEST_LIST = 3
_MAXIMUM_SECRETS = 3


class Row(NamedTuple):
    """One row: `label` names one entry or a family; `alike` names further entries with the same outcomes."""

    label: str
    cells: tuple[str, ...]
    needs: str
    roots: tuple[str, ...]
    alike: tuple[str, ...]
    entries: int
    rank: int


class Table(NamedTuple):
    """`columns` are the runtimes' headings; `cut` counts the entries whose rows were left out."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    cut: int
    has_late: bool
    has_unseen: bool


class _Group(NamedTuple):
    cells: tuple[str, ...]
    needs: str
    roots: tuple[str, ...]


def entry_table(judgements: Sequence[Judgement], runtimes: Sequence[str]) -> Table:
    """Group the judgements: problems first, then in catalog order. Where that is too long, by kind of need."""
    rows = _rows(judgements, runtimes, _needs_text)
    if len(rows) > MAXIMUM_ROWS:
        rows = _rows(judgements, runtimes, _needs_kinds)
    if len(rows) > MAXIMUM_ROWS:
        rows.sort(key=lambda row: row.rank)
    shown = rows[:MAXIMUM_ROWS]
    words = {cell for row in shown for cell in row.cells}
    return Table(
        columns=column_names(runtimes),
        rows=tuple(shown),
        cut=sum(row.entries for row in rows[MAXIMUM_ROWS:]),
        has_late=any(cell.endswith(" late") for cell in words),
        has_unseen=any(cell.endswith(" unseen") for cell in words),
    )


def column_names(runtimes: Sequence[str]) -> tuple[str, ...]:
    """`CLAUDE`, or `CLAUDE@2.1.328` where several versions of one runtime are judged."""
    short = [runtime.partition("@")[0] for runtime in runtimes]
    names = (long if short.count(name) > 1 else name for long, name in zip(runtimes, short, strict=True))
    return tuple(visible(name).upper() for name in names)


def cells_of(judgement: Judgement, runtimes: Sequence[str]) -> tuple[str, ...]:
    """What becomes of one entry, in one or two words a runtime."""
    outcomes = {outcome.runtime: outcome for outcome in judgement.outcomes}
    return tuple(_cell(outcomes[runtime]) if runtime in outcomes else NO_NEED for runtime in runtimes)


def needs_of(judgement: Judgement) -> str:
    """What must be there before the entry can start."""
    return _needs_text(judgement.needs)


def _cell(outcome: Outcome) -> str:
    word = {"late": " late", "never": " unseen"}.get(outcome.first_request, "")
    return outcome.state.value + (word if outcome.state is State.STARTS else "")


def _rows(
    judgements: Sequence[Judgement], runtimes: Sequence[str], say_needs: Callable[[Sequence[Need]], str]
) -> list[Row]:
    groups: dict[_Group, list[Judgement]] = {}
    for judgement in judgements:
        group = _Group(cells_of(judgement, runtimes), say_needs(judgement.needs), judgement.default_in_roots)
        groups.setdefault(group, []).append(judgement)
    rows = [row for group, members in groups.items() for row in _rows_of(group, members)]
    rows.sort(key=lambda row: row.rank > 0)
    return rows


def _rows_of(group: _Group, members: Sequence[Judgement]) -> list[Row]:
    rank = _rank(members[0])
    families = _families([member.entry for member in members])
    if len(families) < _SMALLEST_LIST:
        return [Row(label, *group, (), size, rank) for label, size in families]
    (label, _), *others = families
    return [Row(label, *group, tuple(name for name, _ in others), len(members), rank)]


def _rank(judgement: Judgement) -> int:
    states = {outcome.state for outcome in judgement.outcomes}
    if states & _PROBLEMS:
        return 0
    is_plain = not judgement.needs and all(o.first_request == "yes" for o in judgement.outcomes)
    return 2 if is_plain and states == {State.STARTS} else 1


def _families(names: Sequence[str]) -> list[tuple[str, int]]:
    """Labels with the number of entries each stands for; names with one first word become `zimmer-*`."""
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.partition("-")[0], []).append(name)
    return list(_labels(families.items()))


def _labels(families: Iterable[tuple[str, list[str]]]) -> Iterable[tuple[str, int]]:
    for first_word, names in families:
        if len(names) < _SMALLEST_FAMILY or not first_word:
            yield from ((shorten(visible(name), LONGEST_LABEL) or NO_NAME, 1) for name in names)
            continue
        word = shorten(visible(first_word), LONGEST_LABEL // 3)
        has_bare = first_word in names
        label = f"{word} and {len(names) - 1} {word}-*" if has_bare else f"{len(names)} {word}-*"
        yield label, len(names)


def _needs_text(needs: Sequence[Need]) -> str:
    secrets = [visible(need.text) for need in needs if need.kind == "secret"]
    texts = [_secrets_text(secrets)] if secrets else []
    texts += [f"consent, once, if it asks for it; key {visible(need.text)}" for need in needs if need.kind == "consent"]
    texts += [visible(need.text) for need in needs if need.kind not in {"secret", "consent"}]
    return "; ".join(texts) or NO_NEED


def _secrets_text(names: Sequence[str]) -> str:
    more = len(names) - _MAXIMUM_SECRETS
    listed = ", ".join(names[:_MAXIMUM_SECRETS]) + (f" and {more} more" if more > 0 else "")
    return f"{'secret' if len(names) == 1 else 'secrets'} {listed}"


def _needs_kinds(needs: Sequence[Need]) -> str:
    kinds = dict.fromkeys(need.kind for need in needs)
    return "; ".join(f"{visible(kind)}, each its own" for kind in kinds) or NO_NEED
