"""Rules on agent roots: who gets which server by default.

Source: seed 000 "The entry format" and "Selection is per session".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness.gate.context import Context
from harness.gate.default_roots import default_roots
from harness.gate.model import Severity
from harness.gate.nearness import did_you_mean
from harness.gate.rule import Hit, catalog_rule
from harness.gate.wording import joined
from harness.reference.catalog.roots import EVERY_ROOT, default_mcp_servers, unknown_default_roots
from harness.reference.selection.patch import MAXIMUM_SERVERS as MAXIMUM_SESSION_SERVERS

SERVERS_FIELD = "default_mcp_servers"


def hint(name: str, known: Iterable[str]) -> str:
    """` Did you mean X?`, or nothing."""
    near = did_you_mean(name, known)
    return f" Did you mean {near}?" if near else ""


def _named(value: Any) -> list[tuple[int, str]]:
    """The names in a list with their first places, each once."""
    places: dict[str, int] = {}
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, str):
            places.setdefault(item, index)
    return [(index, item) for item, index in places.items()]


@catalog_rule(
    "MH601",
    Severity.ERROR,
    "a root that names an unknown server",
    why=(
        "Which servers a root gets is declared on the entries (default_in_roots); a root's own list gives it none. AIR"
        " reads such a list all the same and follows its names: 0.3.0 fails the whole resolve over one that the catalog"
        " does not hold, 0.13 drops it and Zimmer counts the resolve as failed. Either way the last good catalog is"
        " served until somebody looks."
    ),
    fix="Remove the name, or drop the whole list: a server gets into a root by its own default_in_roots (MH607).",
)
def root_names_unknown_server(context: Context) -> Iterator[Hit]:
    for root in context.roots.values():
        for index, server in _named(root.raw.get(SERVERS_FIELD)):
            if server not in context.entries:
                yield Hit(
                    (root.name, SERVERS_FIELD, index),
                    f"root {root.name} names {server}, which the catalog does not hold: AIR fails over it, and"
                    f" every session goes on with the last good catalog.{hint(server, context.entries)}",
                    file="roots",
                    subject=server,
                )


@catalog_rule(
    "MH607",
    Severity.WARNING,
    "a root's own list of servers, which has no effect",
    why=(
        "Membership is declared on the entry: AIR makes the list of a root from the default_in_roots of all entries."
        " What roots.json says in default_mcp_servers is not asked, so a server that is listed there alone is in no"
        " session, and one that is left out there is in every session of the root."
    ),
    fix="Declare it in default_in_roots of the entries and drop default_mcp_servers from the root.",
    requirements=("catalog-default-in-roots-seeds",),
)
def list_without_effect(context: Context) -> Iterator[Hit]:
    for root in context.roots.values():
        listed = root.raw.get(SERVERS_FIELD)
        written = [name for _, name in _named(listed)]
        names = [name for name in written if name in context.entries]
        if len(names) < len(written):
            continue  # MH601 tells of this list
        computed = default_mcp_servers(root.name, context.catalog, tuple(context.roots))
        idle = tuple(name for name in names if name not in computed)
        unlisted = tuple(name for name in computed if name not in names)
        if isinstance(listed, list) and (idle or unlisted):
            yield Hit(
                (root.name, SERVERS_FIELD),
                f"the list of servers of root {root.name} has no effect: {_told(idle, unlisted)}.",
                fix=_declare(root.name, idle, unlisted),
                file="roots",
                others=(*idle, *unlisted),
            )


def _told(idle: tuple[str, ...], unlisted: tuple[str, ...]) -> str:
    parts = []
    if idle:
        parts.append(f"its new sessions do not get {joined(idle)}")
    if unlisted:
        parts.append(f"they do get {joined(unlisted)}" if idle else f"its new sessions also get {joined(unlisted)}")
    return ", and ".join(parts)


def _declare(root: str, idle: tuple[str, ...], unlisted: tuple[str, ...]) -> str:
    steps = [f"Write {root} into default_in_roots of {joined(idle)}"] if idle else []
    if unlisted:
        steps.append(f"take {root} out of default_in_roots of {joined(unlisted)} if the list is what you want")
    steps.append(f"drop {SERVERS_FIELD} from the root")
    text = ", ".join(steps)
    return f"{text[0].upper()}{text[1:]}."


@catalog_rule(
    "MH602",
    Severity.WARNING,
    "a default in a root that does not exist",
    why=(
        "default_in_roots decides which sessions start with a server. A value that names no root has no effect on any"
        " of them, and nothing says so."
    ),
    fix="Name an existing root, or remove the value.",
    requirements=("catalog-default-unknown-root",),
)
def default_in_unknown_root(context: Context) -> Iterator[Hit]:
    if context.roots_document is None:
        return
    for server, root in unknown_default_roots(context.catalog, tuple(context.roots)):
        listed = context.entries[server].fields["default_in_roots"]
        why = " Only newer AIR versions read * as every root." if root == EVERY_ROOT else hint(root, context.roots)
        yield Hit(
            (server, "default_in_roots", listed.index(root)),
            f"it is a default in {root}, which is no root: no session gets it there.{why}",
            subject=root,
        )


@catalog_rule(
    "MH603",
    Severity.WARNING,
    "a root whose subagent root does not exist",
    why=(
        "A root with default_subagent_roots gets the `zimmer` server, limited to those roots. A name that is no root"
        " can never be spawned, and a list of nothing else gives a server that can start nothing."
    ),
    fix="Name an existing root.",
)
def unknown_subagent_root(context: Context) -> Iterator[Hit]:
    for root in context.roots.values():
        for index, name in _named(root.raw.get("default_subagent_roots")):
            if name not in context.roots:
                yield Hit(
                    (root.name, "default_subagent_roots", index),
                    f"root {root.name} may spawn {name}, which is no root.{hint(name, context.roots)}",
                    file="roots",
                    subject=name,
                )


@catalog_rule(
    "MH604",
    Severity.WARNING,
    "a default that is declared unavailable",
    why=(
        "A default stays a default whatever its readiness: every new session of the root carries the server, is warned"
        " about it and runs without its tools. A restricted connection cannot even leave it out."
    ),
    fix="Take the root out of default_in_roots until the server works, or remove `unavailable`.",
    requirements=("catalog-default-unavailable-kept",),
)
def unavailable_default(context: Context) -> Iterator[Hit]:
    for view in context.entries.values():
        roots = default_roots(context, view.entry) if view.entry and view.entry.unavailable else ()
        if roots:
            yield Hit(
                (view.name, "default_in_roots"),
                f"it is declared unavailable and still a default in {joined(roots)}: every new session there starts"
                " with a warning and without its tools.",
            )


@catalog_rule(
    "MH605",
    Severity.ERROR,
    "more defaults than a session may hold",
    why=(
        f"A session holds at most {MAXIMUM_SESSION_SERVERS} servers; a root with more defaults starts sessions that"
        " nobody can edit."
    ),
    fix="Take servers out of the root's defaults.",
    requirements=("selection-patch-max-50",),
)
def too_many_defaults(context: Context) -> Iterator[Hit]:
    for root in context.roots:
        servers = default_mcp_servers(root, context.catalog, tuple(context.roots))
        if len(servers) > MAXIMUM_SESSION_SERVERS:
            yield Hit(
                (root,),
                f"root {root} gets {len(servers)} servers by default; a session may hold {MAXIMUM_SESSION_SERVERS}.",
                file="roots",
                others=servers,
            )


@catalog_rule(
    "MH606",
    Severity.WARNING,
    "a root that is no object",
    why="Zimmer drops a root that is not a JSON object without a word; its sessions cannot be started.",
    fix='Write an object, at least {"display_name": "..."}.',
)
def root_is_no_object(context: Context) -> Iterator[Hit]:
    tree = context.roots_document.tree if context.roots_document else {}
    for name in tree:
        if name not in context.roots and name != "$schema":
            yield Hit(
                (name,),
                f"root {name} is no object and is dropped: nobody can start a session there.",
                file="roots",
            )
