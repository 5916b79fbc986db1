"""What rules look at: the catalog, its roots, what is known of secrets and tools, and each entry's spawns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.gate.spawn import Runtime, Spawn, spawn_entry
from harness.inputs.document import Document, Pointer
from harness.reference.catalog.catalog import Catalog, read_catalog
from harness.reference.catalog.entry import Entry
from harness.reference.catalog.roots import Root, read_roots
from harness.reference.catalog.schema import SchemaFault, validate
from harness.reference.oauth.capability import oauth_capable
from harness.reference.secrets.placeholders import Variables, variables
from harness.reference.selection.zimmer import Instance, retarget

if TYPE_CHECKING:
    from harness.gate.battery.course import Trial

SCHEMA_KEY = "$schema"


class SecretKnowledge(NamedTuple):
    """What the user told of secrets. `names` is None when nothing was said; `values` only with --secrets.

    Values are looked at (blank? holding a placeholder?) and never passed on.
    """

    source: str | None = None
    names: frozenset[str] | None = None
    values: Mapping[str, str] | None = None


class EntryView:
    """One entry of the catalog as a rule sees it. `raw` is the JSON value, `entry` what the loader makes of it."""

    def __init__(self, name: str, raw: Any, entry: Entry | None, context: Context) -> None:
        self.name, self.raw, self.entry, self._context = name, raw, entry, context
        self.pointer: Pointer = (name,)

    @property
    def fields(self) -> Mapping[str, Any]:
        """The entry's JSON object; empty where the entry is none."""
        return self.raw if isinstance(self.raw, dict) else {}

    @cached_property
    def for_instance(self) -> Mapping[str, Any]:
        """The entry as the preparing instance reads it: Zimmer's own servers retargeted outside production."""
        return retarget(self.name, dict(self.fields), self._context.instance)

    @cached_property
    def variables(self) -> Variables:
        """The variables that the entry needs on this instance, and those that it can do without."""
        return variables(self.for_instance)

    @cached_property
    def oauth_capable(self) -> bool:
        """Whether a human's consent comes before the first start."""
        return oauth_capable(self.fields)

    @cached_property
    def spawns(self) -> tuple[Spawn, ...]:
        """The entry alone in a session, prepared and read on every runtime that was asked for."""
        return tuple(spawn_entry(self, runtime, self._context) for runtime in self._context.runtimes)

    def strings(self) -> Iterator[tuple[Pointer, str]]:
        """Every string value of the entry with its pointer, in file order."""
        pending: list[tuple[Pointer, Any]] = [(self.pointer, self.raw)]
        while pending:
            pointer, value = pending.pop()
            if isinstance(value, str):
                yield pointer, value
            elif isinstance(value, dict):
                pending += reversed([((*pointer, key), item) for key, item in value.items()])
            elif isinstance(value, list):
                pending += reversed([((*pointer, index), item) for index, item in enumerate(value)])


class Context:
    """Everything that is judged in one run. `tree` is the catalog's JSON object."""

    def __init__(
        self,
        document: Document,
        *,
        runtimes: tuple[Runtime, ...],
        roots_document: Document | None = None,
        secrets: SecretKnowledge | None = None,
        tools: Mapping[str, tuple[str, ...]] | None = None,
        instance: Instance,
    ) -> None:
        self.document, self.roots_document, self.runtimes = document, roots_document, runtimes
        self.tree: Mapping[str, Any] = document.tree
        self.secrets = secrets or SecretKnowledge()
        self.tools = tools or {}
        self.instance = instance
        self.trial: Trial | None = None
        """What the battery found, once it has run."""

    def with_document(self, document: Document) -> Context:
        """The same run over another text of the catalog."""
        return self._like(document, self.runtimes)

    def on(self, runtimes: tuple[Runtime, ...]) -> Context:
        """The same catalog, judged for other runtimes."""
        return self._like(self.document, runtimes)

    def _like(self, document: Document, runtimes: tuple[Runtime, ...]) -> Context:
        return Context(
            document,
            runtimes=runtimes,
            roots_document=self.roots_document,
            secrets=self.secrets,
            tools=self.tools,
            instance=self.instance,
        )

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog as Zimmer loads it."""
        return read_catalog(self.tree)

    @cached_property
    def entries(self) -> Mapping[str, EntryView]:
        """Every key of the file but `$schema`, in file order."""
        loaded = self.catalog.entries
        return {
            name: EntryView(name, raw, loaded.get(name), self) for name, raw in self.tree.items() if name != SCHEMA_KEY
        }

    @cached_property
    def roots(self) -> Mapping[str, Root]:
        """The agent roots; empty without a roots file."""
        return read_roots(self.roots_document.tree) if self.roots_document else {}

    @cached_property
    def schema_faults(self) -> tuple[SchemaFault, ...]:
        """What the published schema says of the file."""
        return validate(self.tree)

    @cached_property
    def variable_names(self) -> Mapping[str, tuple[str, ...]]:
        """Each required variable with the entries that need it, in catalog order."""
        users: dict[str, list[str]] = {}
        for view in self.entries.values():
            for name in view.variables.required:
                users.setdefault(name, []).append(view.name)
        return {name: tuple(entries) for name, entries in users.items()}
