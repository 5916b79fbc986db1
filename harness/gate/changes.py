"""What a change does to whom: one Changed event an entry, then what to do before and after merging.

Source: ARCHITECTURE section 8 ("With --base"); the budget sentences follow startup-timeout-earlier-prepare-wins.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.gate.context import Context, EntryView
from harness.gate.events import Changed, Planned
from harness.gate.model import Change
from harness.gate.wording import joined, shown
from harness.reference.catalog.roots import is_default_in
from harness.reference.credentials.key import credential_key, pi_account
from harness.reference.npx.specs import entry_specs, install_hash
from harness.reference.prepare.budgets import CODEX_LOCAL_KEYS, PI_KEY

_BUDGET_FIELD = "startup_timeout_sec"
_BUDGET_KEYS = (*CODEX_LOCAL_KEYS, PI_KEY)


class Pair(NamedTuple):
    """One entry on both sides; `before` is None where it is added, `after` where it is removed."""

    name: str
    before: EntryView | None
    after: EntryView | None


class Consent(NamedTuple):
    """What a change asks of whom: everyone has to authorize `new`, nobody will claim `orphan` any more."""

    new: str | None
    orphan: str | None


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
    yield from _plan(base, head, altered)


def _change(pair: Pair, base: Context, head: Context) -> Change | None:
    """What became of one entry; None where neither it nor who gets it has changed."""
    name, before, after = pair
    if before is None:
        return None if after is None else Change("added", name, tuple(_added(after, head)), config_diff(None, after))
    if after is None:
        return Change("removed", name, tuple(_removed(before, base, head)), config_diff(before, None))
    if repr(before.raw) != repr(after.raw):
        return Change("changed", name, tuple(_changed(before, after, base, head)), config_diff(before, after))
    moved = tuple(_root_changes(name, base, head))
    return Change("changed", name, moved, {}) if moved else None


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
    url, command = view.fields.get("url"), view.fields.get("command")
    if isinstance(url, str) and url and not (view.entry and view.entry.stdio):
        return f"reach {url.partition('?')[0]}"
    packages = entry_specs(view.fields)
    if packages:
        return f"run {' + '.join(packages)}"
    return f"run {command}" if isinstance(command, str) and command else "neither reach nor run anything"


def roots_of(name: str, context: Context, known: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The roots whose new sessions get the entry by default; without a roots file (nor `known` ones) those it names."""
    entry = context.catalog.find(name)
    if entry is None:
        return ()
    if context.roots_document is not None:
        known = tuple(context.roots)
    if known is None:
        return tuple(dict.fromkeys(entry.default_in_roots))
    return tuple(root for root in known if is_default_in(entry, root))


def _base_roots(name: str, base: Context, head: Context) -> tuple[str, ...]:
    """The same in the base, which may have no roots file yet: then today's roots count."""
    return roots_of(name, base, None if head.roots_document is None else tuple(head.roots))


def _added(view: EntryView, head: Context) -> Iterator[str]:
    roots = roots_of(view.name, head)
    reason = view.entry.unavailable if view.entry else None
    can = f"can {'now ' if roots else ''}{reach(view)}" if reason is None else "has no use of it yet"
    if reason is not None:
        yield f"declared unavailable: {reason}"
        can = "start with a warning and without its tools" if roots else "starts with a warning and without its tools"
    if roots:
        yield f"{_root_list(roots)} by default: those sessions {can}"
    else:
        yield f"by choice only; a session that picks it {can}"
    consent = consent_change(None, view)
    if consent.new is not None:
        yield f"needs consent once: key {consent.new}"
    if view.variables.required:
        yield f"needs {_plural('secret', len(view.variables.required))} {', '.join(view.variables.required)}"


def _removed(view: EntryView, base: Context, head: Context) -> Iterator[str]:
    roots = _base_roots(view.name, base, head)
    if roots:
        yield f"new sessions of {_roots(roots)} no longer get it"
    yield "sessions that chose it keep its name and lose the server at their next prepare"
    orphan = consent_change(view, None).orphan
    if orphan is not None:
        yield f"its stored credential {orphan} becomes unclaimed"


def _changed(before: EntryView, after: EntryView, base: Context, head: Context) -> Iterator[str]:
    yield from _field_changes(before, after)
    yield from _key_changes(before, after)
    yield from _root_changes(after.name, base, head)
    old, new = entry_specs(before.fields), entry_specs(after.fields)
    if new and (not old or install_hash(old) != install_hash(new)):
        yield f"npx package {' + '.join(old) or '(none)'} -> {' + '.join(new)}: installs into a directory of its own"
    gone = [name for name in before.variables.required if name not in after.variables.required]
    fresh = [name for name in after.variables.required if name not in before.variables.required]
    if fresh:
        yield f"now needs {_plural('secret', len(fresh))} {', '.join(fresh)}"
    if gone:
        yield f"no longer needs {_plural('secret', len(gone))} {', '.join(gone)}"
    yield from _config_changes(before, after)


def _field_changes(before: EntryView, after: EntryView) -> Iterator[str]:
    if not before.entry or not after.entry:
        was, now = ("a server" if view.entry else "none" for view in (before, after))
        if was != now:
            yield f"was {was}, is {now} now: its value is {'an' if after.entry else 'no'} object"
    old, new = before.fields, after.fields
    for field in ("type", "command", "url", _BUDGET_FIELD):
        if old.get(field) != new.get(field):
            yield f"{field} {_shown(old.get(field))} -> {_shown(new.get(field))}"
    yield from _oauth_changes(old.get("oauth"), new.get("oauth"))
    reasons = [view.entry.unavailable if view.entry else None for view in (before, after)]
    if reasons[0] != reasons[1]:
        yield f"declared unavailable: {_shown(reasons[0])} -> {_shown(reasons[1])}"


def _shown(value: object) -> str:
    return "(absent)" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _oauth_changes(old: object, new: object) -> Iterator[str]:
    """The members of the `oauth` block that differ; a client's secret is not shown. No stored key depends on it."""
    before, after = (block if isinstance(block, dict) else {} for block in (old, new))
    moved = []
    for field in dict.fromkeys((*before, *after)):
        if before.get(field) != after.get(field):
            values = " -> ".join(
                "(absent)" if block.get(field) is None else shown(block[field]) for block in (before, after)
            )
            moved.append(f"{field} {'(not shown)' if 'secret' in field.lower() else values}")
    if moved:
        yield f"oauth {', '.join(moved)}: new consents use it, stored credentials stay as they are"


def consent_change(before: EntryView | None, after: EntryView | None) -> Consent:
    """Whose stored credential counts no more, and which one everyone has to get.

    A declared server has no Authorize button, so nothing is asked of anybody for it.
    """
    old, new = _stored_key(before), _stored_key(after)
    if old == new:
        return Consent(None, None)
    declared = after is not None and after.entry is not None and after.entry.unavailable is not None
    return Consent(None if declared else new, old)


def _stored_key(view: EntryView | None) -> str | None:
    """The key of the credential that an entry claims; None where no consent applies to it."""
    if view is None or view.entry is None or not view.oauth_capable:
        return None
    return credential_key(view.name, view.entry.credential_config())


def _key_changes(before: EntryView, after: EntryView) -> Iterator[str]:
    old, new = _stored_key(before), _stored_key(after)
    must_authorize = consent_change(before, after).new is not None
    if old == new:
        return
    if new is None:
        remote = after.entry is not None and after.entry.remote
        why = "a static credential replaces consent" if remote else "no consent is needed any more"
        yield f"{why}; the stored credential {old} becomes unclaimed"
    elif old is None:
        everyone = f"; everyone must AUTHORIZE ({_who(after)})" if must_authorize else ""
        yield f"needs consent now: key {new}{everyone}"
    elif must_authorize:
        yield f"stored key {old} -> {new}: everyone must AUTHORIZE AGAIN (claude, codex{_pi_tail(before, after)})"
    else:
        yield f"stored key {old} -> {new}"


def _who(view: EntryView) -> str:
    """The runtimes on which a consent helps: Pi considers none for an entry with headers."""
    return "claude, codex" if view.fields.get("headers") else "claude, codex, pi"


def _pi_tail(before: EntryView, after: EntryView) -> str:
    if after.fields.get("headers"):
        return "; pi authorizes no entry with headers"
    if before.fields.get("url") == after.fields.get("url"):
        return f"; pi keeps its account {pi_account(after.name)[:15]}..."
    return "; pi: same account, but its token is bound to the old URL, so again there too"


def _root_changes(name: str, base: Context, head: Context) -> Iterator[str]:
    old, new = _base_roots(name, base, head), roots_of(name, head)
    if gained := tuple(root for root in new if root not in old):
        yield f"{_root_list(gained)} by default now"
    if lost := tuple(root for root in old if root not in new):
        yield f"new sessions of {_roots(lost)} no longer get it"


def _config_changes(before: EntryView, after: EntryView) -> Iterator[str]:
    diffs = config_diff(before, after)
    same = [spawn.runtime.label for spawn in after.spawns if spawn.runtime.label not in diffs]
    if same:
        yield f"{', '.join(same)}: no byte changes"


def _plan(base: Context, head: Context, altered: list[Pair]) -> Iterator[Planned]:
    fresh = [name for name in head.variable_names if name not in base.variable_names]
    unset = [name for name in fresh if head.secrets.names is None or name not in head.secrets.names]
    if unset:
        yield Planned("before", f"seed {', '.join(unset)} (or fix {'its name' if len(unset) == 1 else 'their names'})")
    consents = {pair.name: consent_change(pair.before, pair.after) for pair in altered}
    again = [name for name, consent in consents.items() if consent.new is not None]
    if again:
        yield Planned("before", f"tell users of {', '.join(again)} to authorize at /connectors")
    budgets = {pair.name: budgets_moved(pair) for pair in altered}
    families = list(dict.fromkeys(family for moved in budgets.values() for family in moved))
    if families:
        names = ", ".join(name for name, moved in budgets.items() if moved)
        yield Planned(
            "after",
            f"existing clones keep their budget for {names} on {joined(families)} until their config is regenerated",
        )
    orphans = [name for name, consent in consents.items() if consent.orphan is not None]
    if orphans:
        yield Planned("after", f"delete the unclaimed credentials of {', '.join(orphans)} at /connectors")
    gone = [name for name in base.variable_names if name not in head.variable_names]
    if gone:
        yield Planned(
            "after",
            f"retire {_plural('secret', len(gone))} {', '.join(gone)}: no entry needs "
            f"{'it' if len(gone) == 1 else 'them'}",
        )


def budgets_moved(pair: Pair) -> tuple[str, ...]:
    """The runtimes whose file gets another budget for the entry than before; Claude's stands in no file."""
    if pair.before is None or pair.after is None or _accepted(pair.before) == _accepted(pair.after):
        return ()
    sides = zip(pair.before.spawns, pair.after.spawns, strict=True)
    return tuple(
        dict.fromkeys(
            old.runtime.family
            for old, new in sides
            if old.written is not None and new.written is not None and _budget(old.written) != _budget(new.written)
        )
    )


def _accepted(view: EntryView) -> int | None:
    return view.entry.startup_timeout_sec if view.entry else None


def _budget(written: Mapping[str, Any]) -> list[object]:
    return [written.get(key) for key in _BUDGET_KEYS]


def _root_list(roots: tuple[str, ...]) -> str:
    return f"{_roots(roots)} {'gets' if len(roots) == 1 else 'get'} it"


def _roots(roots: tuple[str, ...]) -> str:
    return f"{_plural('root', len(roots))} {', '.join(roots)}"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"
