"""The expectations of a scenario file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fake_servers.oauth.authorization import METHODS
from fake_servers.oauth.provider import GRANTS
from harness.scenario import model
from harness.scenario.document import Document, kind_of
from harness.scenario.happenings import HTTP_METHODS, RPC_METHODS
from harness.scenario.matching import check_tool, one_of, read_match
from harness.scenario.model import Expectation, Often
from harness.scenario.paths import checked_path
from harness.scenario.positions import Path
from harness.scenario.sentences import sentence
from harness.scenario.vocabulary import Vocabulary, checked_runtimes

OFTEN = ("times", "at_least", "at_most", "never")
OF_A_SESSION = ("exit", "request", "server", "output")
TEXTS = ("contains", "lacks", "matches")
OF_A_FILE = (*TEXTS, "absent", "mode")
ROWS = ("sessions",)
"""The kinds of rows that a run stores."""
OF_AUTHORIZATION = (*METHODS, *GRANTS, *HTTP_METHODS)
"""What an authorization server can be asked: endpoints, grant types, methods of HTTP."""
OF_MCP = (*RPC_METHODS, *HTTP_METHODS)
"""The same of an MCP server: methods of JSON-RPC and of HTTP."""


def read_expectation(document: Document, names: Vocabulary, index: int, table: Mapping[str, Any]) -> Expectation:
    """One `[[expect]]`. Raises UserInputError."""
    path = ("expect", index)
    kind = kind_of("expect", table) or ""
    names.session(table.get("session"), (*path, "session"), needed=kind in OF_A_SESSION)
    check = read_check(names, kind, table, path)
    return Expectation(
        check,
        table.get("says") or sentence(check),
        names.step(table.get("after"), (*path, "after")),
        table.get("warns", False),
        checked_runtimes(document, table, "only_on", path),
        document.places.line((*path, kind)),
    )


def read_check(names: Vocabulary, kind: str, table: Mapping[str, Any], path: Path) -> model.Check:
    """What is looked at."""
    session = table.get("session")
    match kind:
        case "exit":
            return model.ExitIs(table["exit"], session, table.get("run"))
        case "event":
            before = read_match(names, table["before"], (*path, "before")) if "before" in table else None
            often, span = read_often(names.document, table, path), read_span(names.document, table, path)
            return model.EventHappens(read_match(names, table, path), often, span, before)
        case "request":
            return read_request(names, table, path)
        case "server":
            name = names.server(table["server"], (*path, "server"))
            return model.ServerIs(name, table["is"], table.get("text", "*"), session, table.get("run"))
        case "file":
            return read_file(names.document, table, path)
        case "row":
            name, _, key = table["row"].partition("/")
            one_of(names, "kind of row", name, ROWS, (*path, "row"))
            names.session(key, (*path, "row"))
            return model.RowIs(name, key, table.get("contains"), table.get("lacks"), table.get("absent", False))
        case "received":
            return read_received(names, table, path)
        case "credential":
            return read_credential(names, table, path)
        case "output":
            texts = (table.get("contains"), table.get("lacks"))
            return model.OutputHas(table["output"], *texts, session, table.get("run"))
    return model.InvariantHolds(table["invariant"])


def read_received(names: Vocabulary, table: Mapping[str, Any], path: Path) -> model.Received:
    """Requests to a remote or an authorization server."""
    if table["received"] in names.authorizations:
        often = read_often(names.document, table, path)
        check_method(names, table, OF_AUTHORIZATION, path)
        return model.Received(table["received"], table.get("method", "*"), often)
    name = names.server(table["received"], (*path, "received"))
    if names.transports.get(name) == "stdio":
        fix = "mcp.received is the event of a process."
        names.document.fail((*path, "received"), f"{name} is no remote server", fix)
    check_method(names, table, OF_MCP, path)
    return model.Received(name, table.get("method", "*"), read_often(names.document, table, path))


def check_method(names: Vocabulary, table: Mapping[str, Any], known: Sequence[str], path: Path) -> None:
    """Some request can be so. Raises UserInputError."""
    if "method" in table:
        one_of(names, f"request to {table['received']}", table["method"], known, (*path, "method"))


def read_credential(names: Vocabulary, table: Mapping[str, Any], path: Path) -> model.CredentialIs:
    """How a stored credential stands."""
    name = names.server(table["credential"], (*path, "credential"))
    if not any(key in table for key in ("is", "generation", "newest", "one_shot")):
        names.document.fail(path, f"[[expect]] credential of {name} expects nothing", "Add is = ...")
    return model.CredentialIs(
        name, table.get("is"), table.get("generation"), table.get("newest"), table.get("one_shot")
    )


def read_request(names: Vocabulary, table: Mapping[str, Any], path: Path) -> model.RequestOffers:
    """A model request; a `server/tool` names its server."""
    lists = {key: tuple(table.get(key, ())) for key in ("offers", "lacks", "pending")}
    for key, listed in lists.items():
        for name in listed:
            check_tool(names, name, (*path, key))
    return model.RequestOffers(
        table["request"],
        **lists,
        between=read_span(names.document, table, path),
        session=table.get("session"),
        run=table.get("run"),
    )


def read_file(document: Document, table: Mapping[str, Any], path: Path) -> model.FileIs:
    """A file's content, mode or absence."""
    try:
        re.compile(table.get("matches", ""))
    except (re.error, OverflowError, RecursionError) as error:
        document.fail((*path, "matches"), f"`matches` is no regular expression: {error}", "Escape it.")
    checked_path(document, table["file"], (*path, "file"))
    given = [key for key in OF_A_FILE if key in table]
    if not given:
        document.fail(path, f"[[expect]] {table['file']} expects nothing", f"Add one of {', '.join(OF_A_FILE)}.")
    if table.get("absent") and len(given) > 1:
        document.fail((*path, "absent"), "a file that is absent has no content", "Keep `absent` alone.")
    texts = {key: table.get(key) for key in TEXTS}
    facts = {"mode": table.get("mode"), "session": table.get("session")}
    return model.FileIs(table["file"], **texts, absent=table.get("absent", False), **facts)


def read_often(document: Document, table: Mapping[str, Any], path: Path) -> Often:
    """How often: at least once unless the table says otherwise."""
    given = [key for key in OFTEN if key in table]
    if len(given) > 1 and set(given) != {"at_least", "at_most"}:
        document.fail((*path, given[1]), f"it has both `{given[0]}` and `{given[1]}`", "Keep one of them.")
    if "never" in table:
        return Often(0, 0)
    if "times" in table:
        return Often(table["times"], table["times"])
    most = table.get("at_most")
    return Often(table.get("at_least", 1 if most is None else 0), most)


def read_span(document: Document, table: Mapping[str, Any], path: Path) -> tuple[float, float] | None:
    """Earliest and latest."""
    if "between" not in table:
        return None
    first, last = map(float, table["between"])
    if first < 0 or last < first:
        what = f"`between` is {table['between']}"
        document.fail((*path, "between"), what, "Write the earliest and the latest second, from 0: [0, 3].")
    return first, last
