"""What `mcp-harness canary --bisect` found, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.canary.bisecting import ENDS, Change, Found, looks
from harness.canary.differing import shown
from harness.report.masking import mask
from harness.report.safety import count, visible

DOWNLOAD_MEGABYTES: Mapping[str, int] = {"claude": 120, "codex": 140, "pi": 80}
"""What one version is as it is downloaded, about; on disk it is two to four times that while it is asked."""


def foretold(family: str, versions: int, there: int) -> Iterator[str]:
    """What looking for a change will take, before anything is fetched; `there`: so many are installed already."""
    most, each = looks(versions), DOWNLOAD_MEGABYTES[family]
    if most == ENDS:
        yield "asks both"
    else:
        yield f"asks {ENDS} versions where both ends answer alike, about {most} to find one change, more for several"
    is_there = (
        f"{there} of these {count(versions, 'version')} {'is' if there == 1 else 'are'} there already; "
        if there
        else ""
    )
    missing = min(most, versions - there)
    total = f"{missing * each} MB for {missing}"
    how = f"each other one is installed and removed again: about {each} MB to download, {total}"
    yield is_there + (how if missing else "nothing is downloaded")


def change_lines(family: str, found: Found) -> Iterator[str]:
    """Each change that was found with the answers on both sides of it, and what was looked at for that."""
    for change in found.changes:
        yield f"  {family}@{change.first_new}, after {change.last_old}{doubt(change)}:"
        yield f"    was {visible(mask(shown(change.old)))}"
        yield f"    now {visible(mask(shown(change.new)))}"
    yield f"  looked at: {', '.join(found.asked)}"
    if found.unmeasured:
        yield f"  cannot be measured: {', '.join(found.unmeasured)}"
    if found.unasked:
        what = "what changed and changed back among these does not show"
        yield f"  not looked at: {count(found.unasked, 'other')}; {what}"


def doubt(change: Change) -> str:
    """That it may have been another one."""
    return f" (or one of {', '.join(change.between)}, which cannot be measured)" if change.between else ""


def change_verdict(family: str, versions: str, found: Found) -> str:
    """How often it changes, where first and where last, as far as was looked."""
    if not found.changes:
        return f"SAME  {family} {versions}: both ends answer alike"
    first, last = found.changes[0], found.changes[-1]
    if len(found.changes) == 1:
        return f"FOUND  {family}@{first.first_new} changed it{doubt(first)}, {first.last_old} is as before"
    return (
        f"FOUND  it changes {len(found.changes)} times: first at {family}@{first.first_new}{doubt(first)}, "
        f"last at {family}@{last.first_new}{doubt(last)}"
    )
