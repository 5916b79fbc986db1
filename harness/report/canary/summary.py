"""The sentences that the canary's formats share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from harness.canary.claims import Unstated
from harness.canary.differing import Difference, differences, shown
from harness.canary.judging import NOTHING, Likeness, Row, Verdict
from harness.canary.result import Canary, Checked
from harness.canary.workarounds import Evidence, Need
from harness.next_steps import Step
from harness.report.masking import mask
from harness.report.safety import ELLIPSIS, count, shorten, visible

MOST_DIFFERENCES = 3
FEW = 4
LONGEST_VALUE, LONGEST_OF_MANY = 160, 70
LONGEST_TOGETHER = 400
"""What is shorter together is told whole."""
AROUND = 30
REPEATED = re.compile(r"([^\W_])\1{11,}")
FOLDED_FROM = 4
"""A list of so many claims stands in the text only where its details are asked for."""
BREAKS = "BREAKS what Zimmer relies on"
CHANGES = "CHANGED, and a line of a profile or a rule hangs on it"
OTHERWISE = "ANSWERS OTHERWISE, and what is relied on of it still holds"
OF_NO_ACCOUNT = "CHANGED, nothing of ours hangs on it"
SEED = "seed none"


class Detail(StrEnum):
    """How much is told of each claim: all, only what it was and is, or nothing but why there is no answer."""

    WHOLE = "whole"
    CHANGE = "change"
    REASON = "reason"


class Block(NamedTuple):
    """Claims of one meaning: which, their title, the sign of their lines, and how much is told of each.

    What is `first` stands before the summary of a version, the others behind it; one that `folds` only where its
    details are asked for, if it is long.
    """

    title: str
    sign: str
    holds: Callable[[Row], bool]
    detail: Detail = Detail.REASON
    first: bool = False
    folds: bool = True


def of(*verdicts: Verdict) -> Callable[[Row], bool]:
    """The claims with one of these verdicts."""
    return lambda row: row.verdict in verdicts


def is_news(row: Row) -> bool:
    """Whether it changed and something of ours hangs on it, so that somebody has to look at that."""
    if row.verdict is Verdict.KNOWN:
        return row.answers_otherwise
    return row.verdict is Verdict.CHANGED and bool(row.claim.lines or row.claim.relied_on)


def holds_otherwise(row: Row) -> bool:
    """Whether it holds, and yet is not as it was."""
    return row.verdict is Verdict.HOLDS and row.answers_otherwise


BLOCKS = (
    Block(BREAKS, "!", of(Verdict.BROKEN), Detail.WHOLE, first=True, folds=False),
    Block(CHANGES, "~", is_news, Detail.WHOLE),
    Block(OTHERWISE, "~", holds_otherwise, Detail.CHANGE),
    Block(OF_NO_ACCOUNT, "~", of(Verdict.CHANGED), Detail.WHOLE),
    Block("NOT RECORDED of the version it is held against", "?", of(Verdict.UNRECORDED)),
    Block("BROKEN THERE TOO, as recorded: Zimmer lives with it", "-", of(Verdict.KNOWN)),
    Block("NOT MEASURABLE", "?", of(Verdict.NOT_MEASURABLE), folds=False),
    Block("TIMED OUT, never counted as held", "?", of(Verdict.TIMED_OUT), folds=False),
)
"""What matters most for an upgrade first. A claim is told in the first that it belongs to."""


def blocks(checked: Checked) -> Iterator[tuple[Block, tuple[Row, ...]]]:
    """Those in which there is something."""
    left = checked.rows
    for block in BLOCKS:
        found = tuple(row for row in left if block.holds(row))
        left = tuple(row for row in left if not block.holds(row))
        if found:
            yield block, found


def is_folded(block: Block, rows: Sequence[Row]) -> bool:
    """Whether a list is too long to be read by whoever wants to know what became of an upgrade."""
    return block.folds and len(rows) >= FOLDED_FROM


def measured_twice(checked: Checked) -> str:
    """Which probes were run again, and which answers count; nothing where none was."""
    alone = sorted({name for measured in (checked.real, checked.fake) if measured for name in measured.alone})
    if not alone:
        return ""
    listed = ", ".join(alone) if len(alone) < FEW else f"{', '.join(alone[: FEW - 1])} and {len(alone) - FEW + 1} more"
    return (
        f"{count(len(alone), 'probe')} ({listed}): what a first run says of a change or a failure may be the busy "
        "machine's doing, so each ran once more with nothing beside it; only the answers of that run are told here"
    )


def clean(text: str, limit: int = 400) -> str:
    """A text on one line, of bounded length, without secrets."""
    return shorten(visible(mask(text)), limit)


def heading(checked: Checked) -> str:
    """Which version, held against which."""
    probes = len(checked.real.seconds) if checked.real else len(checked.fake.seconds) if checked.fake else 0
    size = f"{count(len(checked.rows), 'claim')} by {count(probes, 'probe')} in {duration(checked.wall_seconds)}"
    if checked.real is None:
        return f"the fake {checked.label} against what was recorded of {checked.against}: {size}"
    other = f"the pinned {checked.against}" if checked.pinned else checked.against
    whom = "its own record" if checked.against == checked.label else other
    digest = f" (sha256 {checked.digest[:12]})" if checked.digest else ""
    return f"{checked.label} against {whom}: {size}{digest}"


def duration(seconds: float) -> str:
    """`12.3 s`, `3 min 12 s`."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def what_changed(row: Row) -> str:
    """What it was and what it is, in one line."""
    claim = row.claim
    if row.observed is NOTHING:
        return row.reason
    if row.before is not NOTHING:
        return changed_parts(row.before, row.observed, claim.parts) or f"as recorded: {value(row.observed)}"
    if callable(claim.assumes) or isinstance(claim.assumes, Unstated):
        return f"now {value(row.observed)}"
    return changed_parts(claim.assumes, row.observed, claim.parts)


def changed_parts(old: object, new: object, parts: Sequence[str] = (), names: tuple[str, str] = ("was", "now")) -> str:
    """The differing parts of two observations in one line, not too many; nothing where there are none.

    A list whose positions have no names is told whole where that is short. `parts` as for `differences`.
    """
    found = list(differences(old, new, parts=parts))
    nameless = isinstance(old, list) and len(old) > 1 and len(parts) != len(old)
    if found and nameless and max(len(text(old)), len(text(new))) <= LONGEST_VALUE:
        found = [Difference("", old, new)]
    kept = found[:MOST_DIFFERENCES]
    together = sum(len(text(each.old)) + len(text(each.new)) for each in kept)
    limit = LONGEST_VALUE if len(found) == 1 or together <= LONGEST_TOGETHER else LONGEST_OF_MANY
    told = []
    for part in kept:
        place = f"{clean(part.place, LONGEST_VALUE)}: " if part.place else ""
        one, other = excerpts(text(part.old), text(part.new), limit)
        told.append(f"{place}{names[0]} {clean(one, limit)}, {names[1]} {clean(other, limit)}")
    if len(found) > MOST_DIFFERENCES:
        told.append(f"{len(found) - MOST_DIFFERENCES} more (--format json has all)")
    return "; ".join(told)


def text(of: object) -> str:
    """An observation as JSON without its secrets, and a letter that is repeated for long with how often: `t{45}`."""
    return REPEATED.sub(lambda run: f"{run[1]}{{{len(run[0])}}}", mask(shown(of)))


def by_reason(rows: Iterable[Row], reason: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Claims by why there is nothing to say of them: a probe answers many, and fails for all of them at once."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(reason(row), []).append(row)
    return found


def ids(rows: Sequence[Row]) -> str:
    """The claims by their ids, and how many they are where they are many."""
    listed = ", ".join(row.claim.id for row in rows)
    return listed if len(rows) < FEW else f"{len(rows)} claims: {listed}"


def value(of: object) -> str:
    """An observation, shortened."""
    return clean(text(of), LONGEST_VALUE)


def excerpts(one: str, other: str, limit: int = LONGEST_VALUE) -> tuple[str, str]:
    """Two texts from shortly before where they begin to differ to shortly after, where they are long."""
    if max(len(one), len(other)) <= limit:
        return one, other
    begin = alike_letters(one, other)
    end = alike_letters(one[begin:][::-1], other[begin:][::-1])
    first = max(0, begin - AROUND)
    found = []
    for text in (one, other):
        last = min(len(text), len(text) - end + AROUND)
        found.append(f"{ELLIPSIS if first else ''}{text[first:last]}{ELLIPSIS if last < len(text) else ''}")
    return found[0], found[1]


def alike_letters(one: str, other: str) -> int:
    """How many letters two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def rests_on(row: Row) -> str:
    """Which requirements and lines of a profile rest on a claim; nothing where none does."""
    named = (("rules", row.claim.relied_on), ("profile lines", row.claim.lines))
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in named if names)


def fake_line(row: Row) -> Iterator[str]:
    """Why the fake is not like the real one."""
    if row.fake_reason:
        yield clean(row.fake_reason)
        return
    real = row.observed if row.verdict is not None else row.before
    yield changed_parts(real, row.faked, row.claim.parts, ("real", "fake"))


def held(rows: Sequence[Row]) -> str:
    """How many claims hold, of which areas, and how many of them not as they did."""
    otherwise = sum(map(holds_otherwise, rows))
    more = f", {otherwise} with another answer" if otherwise else ""
    return f"{count(len(rows), 'claim')}{more} ({by_area(rows)})"


def workaround_line(found: Evidence) -> str:
    """Whether a version has a bug that something of ours works around, and what follows, in one line."""
    bug, says, ours = found.workaround
    shown_by = f"shown by {', '.join(found.shown_by)}" if found.shown_by else ""
    denied_by = f"not shown by {', '.join(found.denied_by)}" if found.denied_by else ""
    silent = f"no answer of {', '.join(found.silent)}" if found.silent else ""
    evident = "; ".join(part for part in (shown_by, denied_by, silent) if part)
    has_it = {Need.STILL: "has the bug", Need.NO_LONGER: "has no longer the bug", Need.UNKNOWN: "may have the bug"}
    follows = "it is not known whether this is needed" if found.need is Need.UNKNOWN else f"{found.need.value} for that"
    return f"{bug}: this version {has_it[found.need]} that {says} ({evident}); {follows}: {ours}"


def by_area(rows: Iterable[Row]) -> str:
    """`key 13, refresh 4`: how many claims of each area."""
    areas = Counter(row.claim.id.split(".")[1] for row in rows)
    return ", ".join(f"{area} {number}" for area, number in areas.items())


def affected(rows: Iterable[Row]) -> tuple[str, ...]:
    """What in a catalog is touched, each once."""
    return tuple(dict.fromkeys(row.claim.affects for row in rows if row.claim.affects))


def fakes(checked: Checked) -> str:
    """How the fake compares."""
    compared = checked.with_likeness(Likeness.AGREES, Likeness.DIFFERS)
    agree = len(checked.with_likeness(Likeness.AGREES))
    others = [
        likeness_words(likeness, number)
        for likeness in (Likeness.DIFFERS, Likeness.NOT_MODELLED, Likeness.NOT_COMPARED)
        if (number := len(checked.with_likeness(likeness)))
    ]
    return f"{agree}/{len(compared)} claims agree with the fake{''.join(f'; {each}' for each in others)}"


def likeness_words(likeness: Likeness, number: int) -> str:
    """`1 differs`, `12 agree`, `2 not compared`."""
    word = likeness.value
    is_verb = likeness in (Likeness.AGREES, Likeness.DIFFERS)
    return f"{number} {word.removesuffix('s') if is_verb and number != 1 else word}"


def next_steps(canary: Canary) -> Iterator[Step]:
    """What to do now."""
    for checked in canary.checked:
        told = [row for block, found in blocks(checked) if block.detail is Detail.WHOLE for row in found]
        broken = [row for row in told if row.verdict in (Verdict.BROKEN, Verdict.CHANGED)]
        if checked.real is None or checked.label == checked.against:
            continue
        if broken:
            yield Step(f"mcp-harness explain {broken[0].claim.id}")
        if broken and checked.written is None and checked.played is None:
            yield Step(f"mcp-harness canary {checked.label} --write-profile")
        if checked.played is not None and checked.played.fallen:
            yield Step(f"mcp-harness run {checked.played.fallen[0].id} --runtime {checked.label}")
        if broken:
            old = checked.against.partition("@")[2]
            yield Step(f"mcp-harness canary --bisect {broken[0].claim.id} {old}..{checked.version}")


def word(canary: Canary) -> str:
    """The verdict in a word or two."""
    return {0: "PASS", 1: "FAIL"}.get(canary.exit_code, "NOT RUN")


def verdict(canary: Canary) -> str:
    """The last line."""
    fallen = sum(len(each.played.fallen) for each in canary.checked if each.played)
    left = sum(len(each.left) for each in canary.checked)
    worst_first = (
        (canary.count(Verdict.BROKEN), "broken"),
        (fallen, "failing " + ("scenario" if fallen == 1 else "scenarios")),
        (left, "left behind"),
        (canary.count(Verdict.TIMED_OUT), "timed out"),
        (canary.count(Verdict.NOT_MEASURABLE), "not measurable"),
        (canary.count(Verdict.CHANGED), "changed"),
        (canary.count(Verdict.KNOWN), "broken as recorded"),
        (canary.count(Verdict.UNRECORDED), "not recorded"),
        (canary.count(Verdict.HOLDS, Verdict.SAME), "held"),
        (len(canary.missing), "runtime not there" if len(canary.missing) == 1 else "runtimes not there"),
    )
    said = [", ".join(f"{number} {words}" for number, words in worst_first if number)]
    of_fakes = ", ".join(
        likeness_words(likeness, number) for likeness in Likeness if (number := canary.count_fakes(likeness))
    )
    said.append(f"fakes: {of_fakes}" if of_fakes else "")
    told = "; ".join(part for part in said if part) or "no claim was asked for"
    return f"{word(canary)}  {told}; {canary.seconds:.1f} s; {SEED}; exit {canary.exit_code}"
