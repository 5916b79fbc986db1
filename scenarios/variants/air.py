"""Known-bad variants of the fake AIR program and of the composition around it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from fake_runtimes.air import adapters, transforms
from fake_runtimes.air.program import prepare as air_prepare
from harness import preparation
from harness.reference.secrets.loader import SecretsLoader
from harness.requirements.variants import variant

adapters_claude_entry = adapters.claude_entry
adapters_codex_entry = adapters.codex_entry
adapters_forwarding = adapters.codex_forwarding_entry
air_error_text = transforms.error_text
air_environment_rule = preparation.air_environment


@variant("fake_runtimes.air.program:resolve", catches=("catalog-air-resolve-verbatim",))
def resolve_filters_unknown_fields(catalog_tree):
    """Returns the fields that adapters know, so that Zimmer never sees its own two."""
    known = ("type", "title", "description", "command", "args", "env", "url", "headers", "oauth", "default_in_roots")
    if not isinstance(catalog_tree, dict):
        return {}
    return {
        name: {key: value for key, value in entry.items() if key in known} if isinstance(entry, dict) else entry
        for name, entry in catalog_tree.items()
        if name != "$schema"
    }


@variant(
    "fake_runtimes.air.adapters:codex_entry",
    catches=(
        "catalog-air-adapters-fixed-list",
        "startup-timeout-air-does-not-carry",
        "prepare-air-does-not-carry-budget",
    ),
)
def adapter_carries_the_budget(entry):
    """Passes startup_timeout_sec through, so that a missing writer of Zimmer's goes unnoticed."""
    carried = {key: entry[key] for key in ("startup_timeout_sec",) if key in entry}
    return adapters_codex_entry(entry) | carried


@variant(
    "fake_runtimes.air.adapters:claude_entry",
    catches=("prepare-unknown-keys-not-copied", "unavailable-air-ignores-field", "catalog-air-adapters-fixed-list"),
)
def adapter_copies_the_entry(entry):
    """Copies the catalog's entry as it is."""
    return {**entry, **adapters_claude_entry(entry)}


@variant("fake_runtimes.air.program:prepare", catches=("catalog-air-pi-no-mcp",))
def air_writes_claudes_file_for_pi(argv, catalog_tree, **options):
    """Writes Claude's shape for Pi, so that Zimmer's seeding is never needed."""
    if argv[1] != "pi":
        return air_prepare(argv, catalog_tree, **options)
    return air_prepare(("prepare", "claude", *argv[2:]), catalog_tree, **options)


@variant("fake_runtimes.air.program:translate", catches=("catalog-prepare-skips-schema",))
def entries_are_validated_first(adapter, entry, *, forwards):
    """Refuses what the schema refuses before it translates."""
    if entry.get("type") not in ("stdio", "sse", "streamable-http"):
        return {"refused": True}
    return adapters_claude_entry(entry) if adapter != "codex" else adapters_codex_entry(entry)


@variant(
    "fake_runtimes.air.transforms:survivors",
    catches=("secrets-air-survivor-check", "prepare-secrets-joined-at-prepare"),
)
def survivors_are_let_through(value: Any) -> tuple[str, ...]:
    """Warns at most, and goes on with the literal text."""
    return ()


@variant("fake_runtimes.air.transforms:survivors", catches=("secrets-air-survivor-grammar",))
def survivors_use_zimmers_grammar(value: Any) -> tuple[str, ...]:
    """Sees upper-case names only."""
    found = [name for text in transforms.texts(value) for name in transforms.ANY_PLACEHOLDER.findall(text)]
    return tuple(
        dict.fromkeys(
            name for name in found if name.replace("_", "").isalnum() and name.upper() == name and not name[0].isdigit()
        )
    )


@variant("fake_runtimes.air.transforms:error_text", catches=("secrets-air-error-text",))
def failure_text_repeats_the_singular(target, unresolved):
    """Says `variable` however many there are."""
    return air_error_text(target, unresolved).replace("variables in", "variable in")


@variant("fake_runtimes.air.program:config_document", catches=("secrets-air-written-before-fail",))
def nothing_is_on_disk(adapter, existing, servers, settings):
    """Leaves no file behind, as if AIR checked before it wrote."""


@variant("fake_runtimes.air.adapters:codex_forwarding_entry", catches=("secrets-air-codex-no-check",))
def real_adapter_puts_texts_in_place(entry):
    """Leaves the placeholder in env instead of forwarding the name."""
    return adapters_codex_entry(entry)


@variant("fake_runtimes.air.program:local_servers", catches=("secrets-local-entries-trap",))
def only_selected_entries_are_checked(adapter, existing):
    """Takes no notice of what the repository wrote itself."""
    return {}


@variant("fake_runtimes.air.program:activated", catches=("selection-plugin-readds",))
def plugins_servers_are_removed_too(argv, roots, plugins):
    """Applies the removals after the plugins."""
    removed = [value for flag, value in pairwise(argv) if flag == "--without-mcp-server"]
    added = [value for flag, value in pairwise(argv) if flag == "--mcp-server"]
    return tuple(name for name in dict.fromkeys(added) if name not in removed)


@variant("harness.preparation:air_input", catches=("secrets-retargeted-key-not-required", "prepare-step-order"))
def air_sees_the_entry_as_written(session):
    """Hands AIR the production entry, so that its key is required everywhere."""
    entries = session.catalog.entries
    return {name: entries[name].raw for name in session.selected if name in entries}


@variant("harness.preparation:air_environment", catches=("secrets-prepare-uses-whole-chain",))
def air_gets_plain_credentials_only(session, entries):
    """Hands over what the Rails credentials hold: the values of the vendor and the store are missing."""
    loader = getattr(session.lookup, "__self__", None)
    if not isinstance(loader, SecretsLoader):
        return air_environment_rule(session, entries)
    return air_environment_rule(replace(session, lookup=loader._credentials.get), entries)
