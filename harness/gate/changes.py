"""What a change does to whom: one Changed event an entry, then what to do before and after merging.

Source: ARCHITECTURE section 8 ("With --base").
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.gate.consents import Sides, consent_change, key_changes
from harness.gate.context import Context, EntryView
from harness.gate.default_roots import default_roots, defaults_moved, roots_before_and_after
from harness.gate.events import Changed, Planned
from harness.gate.field_changes import field_changes
from harness.gate.model import Change
from harness.gate.outcome_changes import authorizing, outcome_changes, short_names, state_sentences
from harness.gate.plans import Pair, plan, plural
from harness.gate.programs import Code, code_of, is_other_code
from harness.gate.shown_values import LONGEST_ADDRESS, argument_text, cut, pair_text, plain
from harness.gate.wording import joined


def describe_changes(base: Context, head: Context) -> Iterator[Changed | Planned]:
    """Compare two catalogs entry by entry, in the order of the new one, removed ones last."""
    pairs = [Pair(name, base.entries.get(name), view) for name, view in head.entries.items()]
    pairs += [Pair(name, view, None) for name, view in base.entries.items() if name not in head.entries]
    altered: list[Pair] = []
    for pair in pairs:
        change = _change(pair, base, head)
        if change is not None:
            altered.append(pair)
            yield Changed(change)
    yield from plan(base, head, altered)


def _change(pair: Pair, base: Context, head: Context) -> Change | None:
    """What became of one entry; None where neither it nor who gets it has changed."""
    name, before, after = pair
    if before is None:
        return None if after is None else Change("added", name, tuple(_added(after, head)), config_diff(None, after))
    if after is None:
        return Change("removed", name, tuple(_removed(before, base, head)), config_diff(before, None))
    if repr(before.raw) != repr(after.raw):
        return Change("changed", name, tuple(_changed(before, after, base, head)), config_diff(before, after))
    if defaults_moved(name, base, head):
        return Change("changed", name, tuple(_root_changes(name, base, head)), {})
    return None


def config_diff(before: EntryView | None, after: EntryView | None) -> dict[str, str]:
    """Runtime to unified diff of what its file holds for the entry; runtimes whose bytes stay are left out."""
    old = {spawn.runtime.label: spawn.written for spawn in before.spawns} if before else {}
    new = {spawn.runtime.label: spawn.written for spawn in after.spawns} if after else {}
    diffs = {}
    for label in new or old:
        lines = list(
            difflib.unified_diff(_lines(old.get(label)), _lines(new.get(label)), "before", "after", lineterm="", n=3)
        )
        if lines:
            diffs[label] = "\n".join(lines)
    return diffs


def _lines(written: Mapping[str, Any] | None) -> list[str]:
    return [] if written is None else json.dumps(written, indent=2, ensure_ascii=False).splitlines()


def reach(view: EntryView) -> str:
    """What an agent that holds the entry can reach or run."""
    url = view.fields.get("url")
    if isinstance(url, str) and url and not (view.entry and view.entry.stdio):
        return f"reach {cut(plain(url.partition('?')[0]), LONGEST_ADDRESS)}"
    code = code_of(view.fields)
    return f"run {cut(_code_text(code), LONGEST_ADDRESS)}" if code else "neither reach nor run anything"


def _code_text(code: Code) -> str:
    names = " + ".join(map(argument_text, code.names))
    return f"{names} ({code.kind})" if names else code.kind


def _added(view: EntryView, head: Context) -> Iterator[str]:
    roots = default_roots(head, view.entry)
    reason = view.entry.unavailable if view.entry else None
    can = f"can {'now ' if roots else ''}{reach(view)}"
    if reason is not None:
        yield f"declared unavailable: {reason}"
        can = f"start{'' if roots else 's'} with a warning and without its tools; later they could {reach(view)}"
    if roots:
        yield f"{_root_list(roots)} by default: those sessions {can}"
    else:
        yield f"by choice only (no root gets it by default); a session that chooses it {can}"
    consent = consent_change(None, view, head)
    if consent.new is not None:
        yield f"works only after a user's authorization, once, stored under {consent.new}"
    if view.variables.required:
        yield f"needs {plural('secret', len(view.variables.required))} {', '.join(view.variables.required)}"


def _removed(view: EntryView, base: Context, head: Context) -> Iterator[str]:
    roots, _ = roots_before_and_after(view.name, base, head)
    if roots:
        yield f"new sessions of {_roots(roots)} no longer get it"
    yield "sessions that hold it keep its name in their list and lose the server when their config is next written"
    orphan = consent_change(view, None, head).orphan
    if orphan is not None:
        yield f"nothing uses its stored credential {orphan} any more"


def _changed(before: EntryView, after: EntryView, base: Context, head: Context) -> Iterator[str]:
    yield from code_changes(before, after)
    yield from field_changes(before, after)
    yield from state_sentences(outcome_changes(before, after, base, head), head)
    yield from key_changes(before, after, Sides(authorizing(before, base), authorizing(after, head)))
    yield from _root_changes(after.name, base, head)
    gone = [name for name in before.variables.required if name not in after.variables.required]
    fresh = [name for name in after.variables.required if name not in before.variables.required]
    if fresh:
        yield f"now needs {plural('secret', len(fresh))} {', '.join(fresh)}"
    if gone:
        yield f"no longer needs {plural('secret', len(gone))} {', '.join(gone)}"
    yield from _config_kept(before, after, head)


def code_changes(before: EntryView, after: EntryView) -> Iterator[str]:
    """Whether the entry's command line runs another package, image, module, script or program than before."""
    old, new = (code_of(view.fields) if view.entry and view.entry.stdio else None for view in (before, after))
    if not is_other_code(old, new):
        return
    if new is None:
        yield "runs no program any more"
    elif old is None:
        yield f"runs code now: {cut(_code_text(new), LONGEST_ADDRESS)}"
    else:
        yield f"runs other code: {pair_text(_code_text(old), _code_text(new), LONGEST_ADDRESS)}"


def _root_changes(name: str, base: Context, head: Context) -> Iterator[str]:
    old, new = roots_before_and_after(name, base, head)
    if gained := tuple(root for root in new if root not in old):
        yield f"{_root_list(gained)} by default now"
    if lost := tuple(root for root in old if root not in new):
        yield f"new sessions of {_roots(lost)} no longer get it"
    sides = [context.entries[name].fields.get("default_in_roots") for context in (base, head)]
    if not gained and not lost and repr(sides[0]) != repr(sides[1]):
        yield "default_in_roots differs, and the same roots get it by default as before"


def _config_kept(before: EntryView, after: EntryView, head: Context) -> Iterator[str]:
    diffs = config_diff(before, after)
    same = [spawn.runtime.label for spawn in after.spawns if spawn.runtime.label not in diffs]
    if same and not diffs:
        yield "no runtime's config for it changes"
    elif same:
        yield f"on {joined(short_names(same, head))} the config for it does not change"


def _root_list(roots: tuple[str, ...]) -> str:
    return f"{_roots(roots)} {'gets' if len(roots) == 1 else 'get'} it"


def _roots(roots: tuple[str, ...]) -> str:
    return f"{plural('root', len(roots))} {', '.join(roots)}"
