"""From a scenario's text to its frozen values. A fault is one line: file, line, key, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fake_servers.mcp.behaviour import Behaviour, from_table
from harness.errors import UserInputError
from harness.inputs.files import display_path, read_document, read_text
from harness.reference.catalog.roots import read_roots
from harness.scenario import facts, model
from harness.scenario.claims import check_claims
from harness.scenario.desk import ACTORS
from harness.scenario.document import Document, parse
from harness.scenario.entries import check_entries
from harness.scenario.expecting import read_expectation
from harness.scenario.granting import (
    NOT_OF_THE_SERVER,
    check_change,
    read_authorization,
    read_credential,
    read_protections,
)
from harness.scenario.granting import check_names as check_granted
from harness.scenario.happenings import PROCESSES
from harness.scenario.hints import few, meant
from harness.scenario.idle import idle
from harness.scenario.matching import check_actor, read_match
from harness.scenario.model import TIME_SCALE, Scenario
from harness.scenario.paths import check_files, checked_path
from harness.scenario.positions import Path as Place
from harness.scenario.stepping import check_order, read_step
from harness.scenario.vocabulary import Vocabulary, checked_runtime, checked_runtimes
from harness.world import Response
from harness.world.model import Fault

SERVER = "server "
"""In front of a server's name where a fault names one in place of an actor."""
FAULT_TEXTS = {"port": "port", "at": "label", "content": "content"}
FAULT_NUMBERS = ("nth", "times", "after_seconds", "before_seconds", "seconds", "drawn")
EXAMPLE = "mine.toml"
"""What a scenario file may be called."""
ANSWERING = ("answer", "answer-after")
ONLY_WITH = {"status": ANSWERING, "body": ANSWERING, "headers": ANSWERING, "seconds": ("slow",)}


def load_scenario(path: Path) -> Scenario:
    """The scenario in a file, which must expect something. Raises UserInputError."""
    scenario = read_scenario(read_text(path, EXAMPLE), display_path(path), path.parent)
    if not scenario.expectations:
        raise UserInputError(
            "it expects nothing, so it would always pass", file=scenario.file, fix="Add an [[expect]]."
        )
    return scenario


def read_scenario(text: str, name: str = "scenario.toml", folder: Path | None = None) -> Scenario:
    """The scenario in a text; `folder` is where a catalog's relative path starts. Raises UserInputError."""
    return Reader(parse(name, text), folder or Path()).scenario()


class Reader:
    """Builds one scenario; what the schema cannot say is checked here."""

    def __init__(self, document: Document, folder: Path) -> None:
        self.document, self.tree, self.folder = document, document.tree, folder
        self.catalog = self._catalog()
        self.runtimes = self._runtimes()
        self.steps = tuple(read_step(document, index, table) for index, table in self._tables("step"))
        self.doubts = check_entries(document, self.catalog, self.steps, self.tree.get("struck", ()))
        self.entries = tuple(facts.entries(self.catalog, self.steps))
        self.transports = facts.transports(self.entries)
        self.servers: dict[str, Behaviour] = {}
        tables = self.tree.get("authorization", {})
        self.authorizations = {name: read_authorization(document, name, each) for name, each in tables.items()}
        self.names = self._vocabulary()
        self.protections = dict(read_protections(document, self.names, self.tree.get("server", {})))
        self.servers |= {name: self._behaviour(name, table) for name, table in self.tree.get("server", {}).items()}
        self.names = replace(self.names, tools=self._tools())

    def scenario(self) -> Scenario:
        """All of it."""
        tree, document = self.tree, self.document
        check_order(document, self.steps)
        self._check_names()
        check_claims(document)
        return Scenario(
            id=tree["id"],
            title=tree["title"],
            runtimes=self.runtimes,
            steps=self.steps,
            expectations=tuple(read_expectation(document, self.names, *each) for each in self._tables("expect")),
            incidents=tuple(tree.get("incidents", ())),
            requirements=tuple(tree.get("requirements", ())),
            tiers=tuple(tree.get("tiers", ("model",))),
            not_at=tree.get("not_at", {}),
            catalog=self.catalog,
            roots=tree.get("roots", {}),
            secrets=tree.get("secrets", {}),
            environment=tree.get("environment", {}),
            credentials=tuple(read_credential(document, self.names, *each) for each in self._tables("credential")),
            servers=self.servers,
            authorizations=self.authorizations,
            protections=self.protections,
            registered=tree.get("registered", {}),
            app_host=tree.get("app_host"),
            packages={name: model.PackageFacts(name, **table) for name, table in tree.get("package", {}).items()},
            files=tree.get("files", {}),
            faults=tuple(self._fault(index, table) for index, table in self._tables("fault")),
            holds=tuple(self._hold(index, table) for index, table in self._tables("hold")),
            watched=tree.get("watched", True),
            codex_bugs=tuple(tree.get("codex_bugs", ())),
            time_scale=float(tree.get("time_scale", TIME_SCALE)),
            struck=tuple(self.names.server(name, ("struck",)) for name in tree.get("struck", ())),
            old_bugs=tuple(self._old_bug(index, table) for index, table in self._tables("old_bug")),
            warnings=tuple(self._idle()),
            file=document.name,
            text=document.text,
        )

    def _tables(self, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
        return enumerate(self.tree.get(name, ()))

    def _runtimes(self) -> tuple[str, ...]:
        written = self.tree["runtime"]
        names = dict.fromkeys([written] if isinstance(written, str) else written)
        return tuple(checked_runtime(self.document, name, ("runtime",)) for name in names)

    def _catalog(self) -> Mapping[str, Any]:
        written = self.tree.get("catalog", {})
        if not isinstance(written, str):
            return dict(written)
        try:
            tree = read_document(self.folder / written).tree
        except UserInputError as error:
            self.document.fail(("catalog",), str(error))
        if not isinstance(tree, dict):
            self.document.fail(("catalog",), f"{written} holds no object", "Name an mcp.json.")
        return tree

    def _vocabulary(self) -> Vocabulary:
        actions = [step.action for step in self.steps]
        edited = [action.entry for action in actions if isinstance(action, model.Edit)]
        written = [action.text for action in actions if isinstance(action, model.Write)]
        sessions = dict.fromkeys(action.session for action in actions if isinstance(action, model.Start))
        desk = tuple(actor for actor in ACTORS if facts.runs(actor, actions))
        return Vocabulary(
            self.document,
            {*self.catalog, *edited},
            (*self.tree.get("files", {}).values(), *written),
            tuple(sessions),
            tuple(step.name for step in self.steps),
            runs={name: facts.runs(name, actions) for name in (*sessions, *desk)},
            families=tuple(dict.fromkeys(name.partition("@")[0] for name in (*self.runtimes, *self._own_runtimes()))),
            tools=self._tools(),
            packages={
                *self.tree.get("package", {}),
                *(spec for _, entry in self.entries for spec in facts.specs(entry)),
            },
            authorizations=tuple(self.authorizations),
            desk=desk,
            programs={str(entry["command"]) for _, entry in self.entries if entry.get("command")},
            transports=self.transports,
        )

    def _tools(self) -> Mapping[str, Collection[str]]:
        """The tools of each server, as far as its behaviour has been read."""
        return facts.tools(self.entries, self.servers, self.tree.get("package", {}))

    def _started(self) -> set[str]:
        """The packages that some entry starts."""
        return {spec for _, entry in self.entries for spec in facts.specs(entry)}

    def _own_runtimes(self) -> Iterator[str]:
        """Those that a session has for itself."""
        for step in self.steps:
            if isinstance(step.action, model.Start) and step.action.runtime is not None:
                yield step.action.runtime

    def _behaviour(self, name: str, table: Mapping[str, Any]) -> Behaviour:
        self.names.server(name, ("server", name))
        table = {key: value for key, value in table.items() if key not in NOT_OF_THE_SERVER}
        transport = self.transports.get(name, "")
        for key in table:
            if key in facts.WRONG_FIELDS.get(transport, ()):
                what = f"[server.{name}] is a {transport} server, on which `{key}` has no effect"
                self.document.fail(("server", name, key), what, "Take it away.")
        try:
            return from_table({"name": name, **table})
        except ValueError as error:
            self.document.fail(("server", name), f"[server.{name}] {error}")

    def _fault(self, index: int, table: Mapping[str, Any]) -> Fault:
        """As the world knows it, save that `actor` and `label` still hold the file's own names."""
        path = ("fault", index)
        action = table["action"]
        if "server" in table and "actor" in table:
            self.document.fail((*path, "server"), "a fault has both `server` and `actor`", "Keep one of them.")
        if action in ANSWERING and "status" not in table:
            self.document.fail(path, f"[[fault]] {index + 1} {action} lacks `status`", "Add status = ...")
        fields = {FAULT_TEXTS[key]: table[key] for key in FAULT_TEXTS if key in table}
        fields |= {key: table[key] for key in FAULT_NUMBERS if key in table}
        actor = table.get("actor", "*")
        if "actor" in table:
            check_actor(self.names, actor, (*path, "actor"))
        if "server" in table:
            self._check_strikes(table, path)
            actor = f"{SERVER}{self.names.server(table['server'], (*path, 'server'))}"
        answer = None
        if action in ANSWERING:
            answer = Response(table["status"], table.get("headers", {}), table.get("body", "").encode())
        fault = Fault(action, actor=actor, answer=answer, **fields)
        if not facts.has_target(fault):
            self.document.fail(
                path, f"[[fault]] {index + 1} {action} does not say where", "Add server, or actor and at."
            )
        if fault.before_seconds < fault.after_seconds:
            self.document.fail((*path, "before_seconds"), "it ends before it begins", "Swap the two times.")
        for key, actions in ONLY_WITH.items():
            if key in table and action not in actions:
                what = f"`{key}` has no effect with {action}"
                self.document.fail((*path, key), what, f"It goes with {' and '.join(actions)}.")
        return fault

    def _check_strikes(self, table: Mapping[str, Any], path: Place) -> None:
        transport = self.transports.get(table["server"], "")
        possible = facts.STRIKES.get(transport)
        if possible is not None and table["action"] not in possible:
            what = f"{table['action']} cannot strike {table['server']}, a {transport} server"
            self.document.fail((*path, "action"), what, f"There are {few(sorted(possible))}.")

    def _hold(self, index: int, table: Mapping[str, Any]) -> model.HoldFacts:
        path = ("hold", index)
        check_actor(self.names, table["actor"], (*path, "actor"))
        until = read_match(self.names, table["until"], (*path, "until"))
        limit = float(table.get("limit_seconds", 300.0))
        return model.HoldFacts(table["actor"], table["at"], until, limit, table.get("times", 1))

    def _old_bug(self, index: int, table: Mapping[str, Any]) -> model.OldBug:
        runtimes = checked_runtimes(self.document, table, "runtimes", ("old_bug", index))
        return model.OldBug(table["name"], table["shows"], runtimes)

    def _check_names(self) -> None:
        """What one part says of another."""
        known_roots = read_roots(self.tree.get("roots", {}))
        check_files(self.document, self.tree.get("files", {}), self._first_clone())
        for index, step in enumerate(self.steps):
            action = step.action
            self.names.session(getattr(action, "session", None), ("step", index, "session"))
            if isinstance(action, model.Start | model.Select):
                for name in action.servers or ():
                    self.names.server(name, ("step", index, "servers"))
            if isinstance(action, model.Start) and action.root not in (None, *known_roots):
                fix = f"Add [roots.{action.root}]."
                self.document.fail(("step", index, "root"), f"no root is called {action.root!r}", fix)
            self._check_action(action, ("step", index))
        for name, table in self.tree.get("package", {}).items():
            if "server" in table:
                self.names.server(table["server"], ("package", name, "server"))
        check_granted(self.document, self.names, self.tree)

    def _first_clone(self) -> str:
        """Where the first session works."""
        first = next((step.action for step in self.steps if isinstance(step.action, model.Start)), None)
        return model.CLONES if first is None else first.clone or f"{model.CLONES}/{first.session}"

    def _check_action(self, action: model.Action, path: Place) -> None:
        match action:
            case model.Start(turns=turns):
                for call in (call for turn in turns for call in turn.calls):
                    self.names.server(call.server, (*path, "turns"))
            case model.Kill(actor=actor):
                check_actor(self.names, actor, (*path, "kill"), PROCESSES)
            case model.Await(until=until) if until is not None:
                step = self.tree["step"][path[1]]
                read_match(self.names, step["wait_for"], (*path, "wait_for"))
            case model.Edit():
                self._check_edit(action, path)
            case model.Authorize(server=server, session=session):
                self.names.server(server, (*path, "authorize"))
                self.names.session(session, (*path, "session"))
            case model.Provide(authorization=name, revokes=revokes):
                self.names.authorization(name, (*path, "provider"))
                check_change(self.document, self.authorizations[name], action, path)
                if revokes:
                    self.names.server(revokes, (*path, "revokes"))
            case model.Write(path=where):
                checked_path(self.document, where, (*path, "write"))
            case model.Remove(path=where):
                checked_path(self.document, where, (*path, "remove"), is_file=False)

    def _check_edit(self, edit: model.Edit, path: Place) -> None:
        if not (edit.set or edit.unset or edit.delete):
            self.document.fail(path, f"the edit of {edit.entry} changes nothing", "Add set, unset or delete = true.")
        added = [
            step.action.entry
            for step in self.steps[: int(path[1])]
            if isinstance(step.action, model.Edit) and step.action.set
        ]
        if edit.entry not in (*self.catalog, *added) and not {"command", "url"} & {*edit.set}:
            hint = meant(edit.entry, self.catalog) or "A new entry needs a command or a url."
            self.document.fail((*path, "edit"), f"the catalog has no {edit.entry!r}", hint)

    def _idle(self) -> Iterator[str]:
        """Entries that AIR's schema refuses, tables that change nothing: a line with its place each."""
        for path, what in (*self.doubts, *idle(self.names, self.steps, self.servers, self._started())):
            yield f"{self.document.name}:{self.document.places.line(path)}: {what}"
