"""What `mcp-harness canary --bisect` found, in words."""

from __future__ import annotations

from collections.abc import Iterator

from harness.canary.bisecting import Change, Found
from harness.canary.differing import shown
from harness.report.masking import mask
from harness.report.safety import count, visible


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
