"""From a scenario's text to its frozen values. A fault is one line: file, line, key, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fake_servers.mcp.behaviour import Behaviour, from_table
from harness.errors import UserInputError
from harness.inputs.files import display_path, read_document, read_text
from harness.reference.catalog.roots import read_roots
from harness.scenario import model
from harness.scenario.document import Document, parse
from harness.scenario.expecting import read_expectation
from harness.scenario.model import Scenario
from harness.scenario.stepping import check_order, read_step
from harness.scenario.vocabulary import Vocabulary, checked_runtime, checked_runtimes, read_match
from harness.world import Response
from harness.world.model import Fault

SERVER = "server "
"""In front of a server's name where a fault names one in place of an actor."""
FAULT_TEXTS = {"port": "port", "at": "label", "content": "content"}
FAULT_NUMBERS = ("nth", "times", "after_seconds", "before_seconds", "seconds", "drawn")
ANSWERING = ("answer", "answer-after")


def load_scenario(path: Path) -> Scenario:
    """The scenario in a file. Raises UserInputError."""
    return read_scenario(read_text(path), display_path(path), path.parent)


def read_scenario(text: str, name: str = "scenario.toml", folder: Path | None = None) -> Scenario:
    """The scenario in a text; `folder` is where a catalog's relative path starts. Raises UserInputError."""
    return Reader(parse(name, text), folder or Path()).scenario()


class Reader:
    """Builds one scenario; what the schema cannot say is checked here."""

    def __init__(self, document: Document, folder: Path) -> None:
        self.document, self.tree, self.folder = document, document.tree, folder
        self.catalog = self._catalog()
        self.steps = tuple(read_step(document, index, table) for index, table in self._tables("step"))
        self.names = self._vocabulary()

    def scenario(self) -> Scenario:
        """All of it."""
        tree, document = self.tree, self.document
        check_order(document, self.steps)
        self._check_names()
        return Scenario(
            id=tree["id"],
            title=tree["title"],
            runtimes=self._runtimes(),
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
            credentials=tuple(model.Credential(**table) for _, table in self._tables("credential")),
            servers={name: self._behaviour(name, table) for name, table in tree.get("server", {}).items()},
            packages={name: model.PackageFacts(name, **table) for name, table in tree.get("package", {}).items()},
            files=tree.get("files", {}),
            faults=tuple(self._fault(index, table) for index, table in self._tables("fault")),
            holds=tuple(read_hold(table) for _, table in self._tables("hold")),
            watched=tree.get("watched", True),
            struck=tuple(self.names.server(name, ("struck",)) for name in tree.get("struck", ())),
            old_bugs=tuple(self._old_bug(index, table) for index, table in self._tables("old_bug")),
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
        return Vocabulary(
            self.document,
            {*self.catalog, *edited},
            (*self.tree.get("files", {}).values(), *written),
            tuple(sessions),
            tuple(step.name for step in self.steps),
        )

    def _behaviour(self, name: str, table: Mapping[str, Any]) -> Behaviour:
        self.names.server(name, ("server", name))
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
        if "server" in table:
            actor = f"{SERVER}{self.names.server(table['server'], (*path, 'server'))}"
        answer = None
        if action in ANSWERING:
            answer = Response(table["status"], table.get("headers", {}), table.get("body", "").encode())
        return Fault(action, actor=actor, answer=answer, **fields)

    def _old_bug(self, index: int, table: Mapping[str, Any]) -> model.OldBug:
        runtimes = checked_runtimes(self.document, table, "runtimes", ("old_bug", index))
        return model.OldBug(table["name"], table["shows"], runtimes)

    def _check_names(self) -> None:
        """What one part says of another."""
        known_roots = read_roots(self.tree.get("roots", {}))
        for index, step in enumerate(self.steps):
            action = step.action
            self.names.session(getattr(action, "session", None), ("step", index, "session"))
            if isinstance(action, model.Start | model.Select):
                for name in action.servers or ():
                    self.names.server(name, ("step", index, "servers"))
            if isinstance(action, model.Start) and action.root not in (None, *known_roots):
                fix = f"Add [roots.{action.root}]."
                self.document.fail(("step", index, "root"), f"no root is called {action.root!r}", fix)
        for name, table in self.tree.get("package", {}).items():
            if "server" in table:
                self.names.server(table["server"], ("package", name, "server"))
        for index, table in self._tables("credential"):
            self.names.server(table["server"], ("credential", index))


def read_hold(table: Mapping[str, Any]) -> model.HoldFacts:
    """One `[[hold]]`."""
    limit = float(table.get("limit_seconds", 300.0))
    return model.HoldFacts(table["actor"], table["at"], read_match(table["until"]), limit, table.get("times", 1))
