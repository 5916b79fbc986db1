"""Entries of the catalog that a runtime never has a server of, told before anything is prepared."""

from __future__ import annotations

from harness.reference.catalog.connection import missing_member
from harness.reference.catalog.entry import Entry
from harness.reference.prepare import codex_tables
from harness.reference.prepare.names import name_refusal
from harness.reference.prepare.request import Runtime


def entry_refusal(runtime: Runtime, entry: Entry) -> str | None:
    """Why a preparation for this runtime leaves a remote entry out, or the runtime does; None: it may have it.

    A local entry of the repository's under the same name counts for nothing here: it is not the catalog's.
    """
    missing = missing_member(entry)
    if missing is not None:
        return f"the entry has no usable {missing}"
    if runtime == "codex":
        return codex_tables.refusal(entry.name, codex_tables.remote_table(entry.raw))
    return name_refusal(runtime, entry.name)
