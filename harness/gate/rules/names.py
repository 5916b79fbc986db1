"""Rules on server names and on the tool names that runtimes make of them.

Source: the measured name rules of each runtime.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from fake_runtimes.profile import ClaudeProfile
from fake_runtimes.runtimes import offered, server_label
from harness.gate.context import Context, EntryView
from harness.gate.model import Severity
from harness.gate.rule import Asked, Hit, catalog_rule, entry_rule
from harness.gate.spawn import Runtime
from harness.gate.wording import joined, labels, named
from harness.inputs.document import pointer_text
from harness.reference.selection.patch import MAXIMUM_NAME_CHARACTERS, clean

_CODEX_WRITABLE = re.compile(r"[a-zA-Z0-9_-]+")
_LOG_FOLDER = re.compile(r"[^A-Za-z0-9]")
_HASHED = re.compile(r"_[0-9a-f]{12}$")
_NO_LETTER = re.compile(r"[^a-zA-Z0-9_]")
_DELIMITER = "__"
_ENCODED = "_mcpns_"

SMALLEST_TOOL_ROOM = 24
"""Longer tool names are common; without room they are cut and get a hash that changes with the neighbours."""


def codex_takes_name(name: str) -> bool:
    """Whether a name can be a table of Codex's config; others are left out of it."""
    return _CODEX_WRITABLE.fullmatch(name) is not None


def holds_delimiter(name: str) -> bool:
    """Whether a name holds what parts server and tool in a tool's name."""
    return _DELIMITER in name


def loads(runtime: Runtime, name: str) -> bool:
    """Whether a server of this name can get into a session on the runtime."""
    if isinstance(runtime.profile, ClaudeProfile):
        return name not in runtime.profile.reserved_names
    return runtime.family != "codex" or codex_takes_name(name)


@entry_rule(
    "MH701",
    Severity.ERROR,
    "a name that Codex refuses",
    why=(
        "AIR's schema admits $ [ ] in a name, Codex 0.146 takes only letters, digits, _ and - and fails that "
        "one server at start."
        " Zimmer therefore leaves such an entry out of config.toml with a warning in a log: the server is "
        "silently missing on Codex."
    ),
    fix="Use letters, digits, - and _ only.",
    requirements=("catalog-name-codex-unsafe-lint", "prepare-codex-entry-validated"),
    covers=("MH805",),
)
def codex_refuses_name(context: Context, view: EntryView) -> Iterator[Hit]:
    codex = labels(context, "codex")
    if codex and not codex_takes_name(view.name):
        invalid = any(
            fault.rule == "name" and fault.at == pointer_text(view.pointer) for fault in context.schema_faults
        )
        refused = ", and `air validate` refuses the whole catalog" if invalid else ""
        encoded = [f"{label} to the agent on {runtime}" for runtime, label in encoded_labels(context, view.name)]
        yield Hit(
            view.pointer,
            f"this is no server name on Codex: the entry is left out of its config{refused}."
            + (f" It reads {joined(encoded)}." if encoded else ""),
            runtimes=codex,
        )


def name_is_told(context: Context, name: str) -> bool:
    """Whether MH701 or MH707 says that a name is wrong, so that nothing else has to."""
    return (bool(labels(context, "codex")) and not codex_takes_name(name)) or clean([name]) != (name,)


@entry_rule(
    "MH702",
    Severity.WARNING,
    "a name that holds the tool delimiter",
    why=(
        "Tools are offered as mcp__<server>__<tool>, and no runtime protects a `__` inside a name: a__b with "
        "tool c reads like"
        " server a with tool b__c, so permissions and status detection can hit the wrong server."
    ),
    fix="Use one underscore or a dash.",
    requirements=("catalog-name-codex-unsafe-lint",),
)
def name_holds_delimiter(_context: Context, view: EntryView) -> Iterator[Hit]:
    if holds_delimiter(view.name):
        yield Hit(
            view.pointer,
            "the name contains `__`, which also separates server and tool: the two cannot be told apart.",
        )


@catalog_rule(
    "MH703",
    Severity.WARNING,
    "names that read alike in tool names",
    why=(
        "Each runtime replaces characters of a server's name before it goes into tool names. Where two "
        "servers of one session"
        " come out alike, Claude drops one of two equal tools without a word, Codex renames both servers with "
        "a hash, and Pi"
        " skips both."
    ),
    fix="Rename one of them so that they differ in a letter or digit.",
)
def names_read_alike(context: Context) -> Iterator[Hit]:
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for runtime in context.runtimes:
        read_as: dict[str, list[str]] = defaultdict(list)
        for name in context.entries:
            if loads(runtime, name):
                read_as[server_label(runtime.profile, name)].append(name)
        for names in read_as.values():
            if len(names) > 1:
                alike[tuple(names)].append(runtime.label)
    for group, runtimes in alike.items():
        yield Hit(
            (group[-1],),
            f"the name reads like {joined(group[:-1])} in tool names on {named(context, runtimes)}: a session with "
            f"{together(group)} loses or renames tools.",
            runtimes=tuple(runtimes),
            others=group[:-1],
        )


def together(names: tuple[str, ...]) -> str:
    """`both`, or `two of them`."""
    return "both" if len(names) == 2 else "two of them"


@catalog_rule(
    "MH704",
    Severity.WARNING,
    "servers that share a Claude log folder",
    why=(
        "Claude writes each server's log to mcp-logs-<name> with every character but letters and digits "
        "replaced by a dash. Two"
        " names that differ only there share folder and file, and the status that Zimmer reads from it mixes them up."
    ),
    fix="Rename one of them so that they differ in a letter or digit.",
)
def shared_log_folder(context: Context) -> Iterator[Hit]:
    claude = labels(context, "claude")
    folders: dict[str, list[str]] = defaultdict(list)
    for name in context.entries if claude else ():
        folders[log_folder(name)].append(name)
    for folder, names in folders.items():
        if len(names) > 1:
            yield Hit(
                (names[-1],),
                f"the server shares Claude's log folder {folder} with {joined(names[:-1])}: their connection states get"
                " mixed up.",
                runtimes=claude,
                others=tuple(names[:-1]),
            )


def log_folder(name: str) -> str:
    """The folder of a server's log: a dash for each UTF-16 unit that is no ASCII letter or digit."""
    return "mcp-logs-" + _LOG_FOLDER.sub(lambda odd: "-" * (len(odd[0].encode("utf-16-le")) // 2), name)


@entry_rule(
    "MH705",
    Severity.WARNING,
    "a name that a runtime encodes",
    why=(
        "Pi writes a server name with characters beyond letters, digits, - and _ as hex digits. The agent "
        "then sees a name that"
        " nobody can read or type, and instructions that mention the server by name miss it."
    ),
    fix="Use letters, digits, - and _ only.",
)
def name_is_encoded(context: Context, view: EntryView) -> Iterator[Hit]:
    if name_is_told(context, view.name):
        return
    for runtime, label in encoded_labels(context, view.name):
        too_long = codex_takes_name(view.name)
        yield Hit(
            view.pointer,
            f"the name reads {label} on {runtime}.",
            fix="Shorten the server's name." if too_long else "",
            runtimes=(runtime,),
        )


def encoded_labels(context: Context, name: str) -> list[tuple[str, str]]:
    """The runtimes that write a name in hex digits into tool names, each with what they write."""
    labelled = [(runtime.label, server_label(runtime.profile, name)) for runtime in context.runtimes]
    return [
        (runtime, label) for runtime, label in labelled if label.startswith(_ENCODED) and not name.startswith(_ENCODED)
    ]


@entry_rule(
    "MH706",
    Severity.WARNING,
    "little room for tool names",
    why=(
        "Codex 0.146 allows 64 characters for namespace and tool together, 0.169 allows 128. A longer tool "
        "name is cut and gets"
        " a hash, under which no instruction or approval rule finds it."
    ),
    fix="Shorten the server's name.",
)
def little_tool_room(_context: Context, view: EntryView) -> Iterator[Hit]:
    for spawn in view.spawns:
        room = spawn.tool_name_room
        if room is not None and room < SMALLEST_TOOL_ROOM:
            yield Hit(
                view.pointer,
                f"the name leaves {room} {'character' if room == 1 else 'characters'} for a tool name on "
                f"{spawn.runtime.label}; "
                "longer ones are cut and hashed.",
                runtimes=(spawn.runtime.label,),
            )


@entry_rule(
    "MH707",
    Severity.ERROR,
    "a name that cannot be chosen",
    why=(
        f"Zimmer cuts a chosen name to {MAXIMUM_NAME_CHARACTERS} characters before it looks it up, so a "
        "longer one is never found."
    ),
    fix=f"Use at most {MAXIMUM_NAME_CHARACTERS} characters, no blank at either end.",
    requirements=("selection-patch-order-of-checks",),
    covers=("MH701", "MH706"),
)
def name_cannot_be_chosen(_context: Context, view: EntryView) -> Iterator[Hit]:
    reached = clean([view.name])
    if not reached:
        yield Hit(view.pointer, "no session can choose this server: a blank name is dropped before the lookup.")
    elif reached[0] != view.name:
        cut = len(view.name.strip()) > MAXIMUM_NAME_CHARACTERS
        how = f"its name of {len(view.name)} characters is cut" if cut else "the blanks around its name are trimmed"
        yield Hit(view.pointer, f"no session can choose this server: {how} before the lookup.")


@catalog_rule(
    "MH708",
    Severity.WARNING,
    "tool names that are cut, renamed or lost",
    why=(
        "With --tools the gate knows the tools of each server and makes the names that every runtime would "
        "offer. A cut name"
        " carries a hash that changes with the other servers of the session; a dropped tool is simply not there."
    ),
    fix="Give the tool another name at the server; where names are too long, a shorter server name helps as well.",
    asked=Asked.WITH_TOOLS,
)
def tool_names(context: Context) -> Iterator[Hit]:
    listed = {name: tools for name, tools in context.tools.items() if name in context.entries}
    for runtime in context.runtimes if listed else ():
        for server, tools in listed.items():
            if not loads(runtime, server):
                continue
            result = offered(runtime.profile, {server: tools})
            lost = sorted({tool for _, tool in result.dropped})
            changed = sorted(tool for (_, tool), name in result.names.items() if hashed(tool, name))
            for verb, names in (("loses", lost), ("offers under a hashed name", changed)):
                if names:
                    yield Hit(
                        (server,),
                        f"{runtime.label} {verb} {'tool' if len(names) == 1 else 'tools'} {joined(names)}.",
                        fix=fix_of_tool_names(lost or alike(changed, tools)),
                        runtimes=(runtime.label,),
                        subject=verb,
                    )


def alike(changed: list[str], tools: tuple[str, ...]) -> list[str]:
    """The tools among `changed` that read like another one of their server, so that their length is not the reason."""
    plain = [_NO_LETTER.sub("_", tool) for tool in tools]
    return [tool for tool in changed if plain.count(_NO_LETTER.sub("_", tool)) > 1]


def fix_of_tool_names(names: list[str]) -> str:
    """What helps: another name where two tools meet, a shorter one where there is no room."""
    if names:
        return f"Rename {'it' if len(names) == 1 else 'them'} at the server: two of its tools read alike."
    return "Shorten the server's name, or the tool's name at the server."


def hashed(tool: str, name: str) -> bool:
    """Whether a runtime put a hash behind a tool's name; a tool may also be called like one."""
    found = _HASHED.search(name)
    return found is not None and not tool.endswith(found[0])


@catalog_rule(
    "MH709",
    Severity.NOTE,
    "a tool list for a server that is not there",
    why=(
        "A server in the --tools file that the catalog does not hold is not looked at; a misspelt name hides the check."
    ),
    fix="Correct the name in the --tools file.",
    asked=Asked.WITH_TOOLS,
)
def tools_of_unknown_server(context: Context) -> Iterator[Hit]:
    for name in context.tools:
        if name not in context.entries:
            yield Hit((), f"the tool list names {name}, which the catalog does not hold.", subject=name)
