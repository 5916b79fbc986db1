"""Old and plausible bugs of reading and composing the catalog, and of the catalog that ships."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.reference.catalog.catalog import Catalog
from harness.reference.catalog.catalog import is_server as is_server_rule
from harness.reference.catalog.composition import LOCAL_SCOPE
from harness.reference.catalog.connection import Connectable
from harness.reference.catalog.connection import connectable as connectable_rule
from harness.reference.catalog.connection import missing_member as missing_member_rule
from harness.reference.catalog.entry import read_entry as read_entry_rule
from harness.reference.catalog.roots import default_mcp_servers as default_mcp_servers_rule
from harness.reference.catalog.roots import is_default_in as is_default_in_rule
from harness.reference.secrets.interpolator import resolve_entry as resolve_entry_rule
from harness.reference.secrets.interpolator import resolve_value as resolve_value_rule
from harness.reference.selection.session import backfill as backfill_rule
from harness.reference.selection.session import create as create_rule
from harness.requirements.variants import variant
from scenarios.shipped import shipped_catalog as shipped_catalog_rule

IS_SERVER = "harness.reference.catalog.catalog:is_server"
READ_CATALOG = "harness.reference.catalog.catalog:read_catalog"
ENTRY = "harness.reference.catalog.entry:"
CONNECTION = "harness.reference.catalog.connection:"
ROOTS = "harness.reference.catalog.roots:"
SHIPPED = "scenarios.shipped:shipped_catalog"

KNOWN_FIELDS = frozenset(
    {
        "title", "description", "type", "command", "args", "env", "url",
        "headers", "oauth", "default_in_roots", "unavailable", "startup_timeout_sec",
    }
)  # fmt: skip


@variant(IS_SERVER, catches=("catalog-entry-is-the-config",))
def body_files_are_required(name, raw):
    """Looks for a body file, as the other artifact types have one."""
    return is_server_rule(name, raw) and ("path" not in raw or Path(str(raw["path"])).exists())


@variant(READ_CATALOG, catches=("catalog-flat-name-map",))
def every_key_is_a_server(tree):
    """`$schema` shows up among the servers."""
    return Catalog({name: read_entry_rule(name, raw if isinstance(raw, Mapping) else {}) for name, raw in tree.items()})


@variant(IS_SERVER, catches=("catalog-known-fields",))
def unknown_fields_reject_the_entry(name, raw):
    """A closed reading of the entry format."""
    return is_server_rule(name, raw) and set(raw) <= KNOWN_FIELDS


@variant(ENTRY + "is_remote", catches=("catalog-transport-values",))
def spelling_of_a_transport_is_normalised(transport):
    """Takes other letters and separators for the same transport."""
    return str(transport).strip().lower().replace("_", "-") in ("http", "streamable-http", "sse")


@variant(ENTRY + "is_stdio", catches=("catalog-transport-values",))
def a_missing_transport_means_stdio(transport):
    """Reads an entry without a type as a local one."""
    return transport in (None, "stdio")


@variant(ENTRY + "is_remote", catches=("catalog-http-alias-everywhere",))
def http_is_not_remote(transport):
    """One predicate forgets the second spelling, so Pi finds no command in the entry."""
    return transport in ("streamable-http", "sse")


@variant(CONNECTION + "missing_member", catches=("catalog-stdio-fields",))
def a_command_is_not_asked_for(entry):
    """Codex then refuses the whole config file."""
    return None if entry.stdio else missing_member_rule(entry)


@variant(CONNECTION + "connectable", catches=("catalog-stdio-fields", "catalog-remote-fields"))
def one_bad_entry_costs_all(entries):
    """Nothing is prepared where one entry cannot be."""
    result = connectable_rule(entries)
    return Connectable((), result.warnings) if result.warnings else result


@variant(CONNECTION + "missing_member", catches=("catalog-remote-fields",))
def a_url_is_not_asked_for(entry):
    """A blank or missing URL is prepared like any other."""
    return None if entry.remote else missing_member_rule(entry)


@variant("harness.reference.oauth.capability:oauth_capable", catches=("catalog-oauth-field-scope",))
def the_block_makes_an_entry_capable(entry):
    """Looks at the block instead of at the transport."""
    return entry is not None and bool(entry.get("oauth"))


@variant(ENTRY + "oauth_applies", catches=("catalog-oauth-field-scope",))
def the_block_counts_on_every_transport(transport):
    """A stdio entry hands its client to the flow."""
    return True


@variant(ENTRY + "oauth_member", catches=("catalog-oauth-keys",))
def only_snake_case_is_read(raw, camel_case, snake_case):
    """The published spelling is ignored."""
    value = raw.get(snake_case)
    return value if isinstance(value, str) and value.strip() else None


@variant(ENTRY + "title_or_name", catches=("catalog-absent-field-defaults",))
def a_title_may_be_missing(title, name):
    """Prints a blank heading."""
    return title if isinstance(title, str) else ""


@variant("harness.reference.catalog.catalog:find_exact", catches=("catalog-lookup-exact",))
def names_match_loosely(entries, name):
    """Any case, and any beginning of a name."""
    return next((entry for known, entry in entries.items() if known.startswith(name.lower())), None)


@variant("harness.reference.secrets.interpolator:resolve_value", catches=("catalog-placeholder-fields-in-format",))
def only_whole_values_are_filled(value, lookup):
    """`Bearer ${T}` reaches the server as it is."""
    whole = isinstance(value, str) and re.fullmatch(r"\$\{\w+\}", value)
    return resolve_value_rule(value, lookup) if whole else value


@variant("harness.reference.catalog.catalog:Catalog.snapshot_text", catches=("catalog-readonly",))
def the_interpolated_tree_is_kept(self):
    """The last known good tree holds the values of its secrets."""
    filled = {name: resolve_entry_rule(entry.raw, lambda _: "the-secret") for name, entry in self.entries.items()}
    return json.dumps(filled)


@variant("harness.reference.secrets.interpolator:resolve_entry", catches=("catalog-readonly",))
def secrets_are_filled_in_place(entry, lookup):
    """The catalog's own entry is changed."""
    entry.update(resolve_entry_rule(entry, lookup))
    return entry


@variant("harness.reference.catalog.readers:resolved", catches=("catalog-readers-degrade-empty",))
def an_error_reaches_the_request(resolve):
    """A page fails because the catalog does."""
    return resolve(), None


@variant("harness.reference.catalog.readers:artifacts", catches=("catalog-resolve-type-guard",))
def any_member_is_an_artifact(tree, kind):
    """Takes what is no object for an artifact."""
    found = tree.get(kind) or {}
    return dict(found) if isinstance(found, Mapping) else {}


@variant("harness.reference.catalog.composition:compose", catches=("catalog-compose-union-only",))
def a_later_file_wins(sources):
    """Overrides without a word."""
    return {
        f"@{source.scope}/{name}": raw for source in sources for name, raw in source.tree.items() if name != "$schema"
    }


@variant("harness.reference.catalog.composition:qualified", catches=("catalog-compose-bare-keys",))
def the_scope_of_a_key_is_stripped(name, source):
    """Accepts what AIR refuses."""
    return f"@{LOCAL_SCOPE}/{name.rpartition('/')[2]}"


@variant(ROOTS + "default_mcp_servers", catches=("catalog-default-in-roots-seeds",))
def roots_list_their_own_defaults(root_name, catalog, known_roots, *, star=False):
    """Reads the older field of roots.json."""
    if not isinstance(known_roots, Mapping):
        return default_mcp_servers_rule(root_name, catalog, known_roots, star=star)
    return tuple(known_roots[root_name].raw.get("default_mcp_servers", ()))


@variant(ROOTS + "default_mcp_servers", catches=("catalog-default-order",))
def defaults_are_sorted(root_name, catalog, known_roots, *, star=False):
    """Alphabetical."""
    return tuple(sorted(default_mcp_servers_rule(root_name, catalog, known_roots, star=star)))


@variant(ROOTS + "default_mcp_servers", catches=("catalog-default-unknown-root",))
def a_wrong_root_costs_the_entry_its_others(root_name, catalog, known_roots, *, star=False):
    """Drops an entry that names a root which does not exist."""
    names = default_mcp_servers_rule(root_name, catalog, known_roots, star=star)
    return tuple(name for name in names if set(catalog.require(name).default_in_roots) <= {*known_roots, "*"})


@variant(ROOTS + "is_default_in", catches=("catalog-default-star",))
def a_star_always_means_every_root(entry, root_name, *, star=False):
    """The newer reading, whatever the version."""
    return is_default_in_rule(entry, root_name, star=True)


@variant(ROOTS + "is_default_in", catches=("catalog-default-unavailable-kept",))
def defaults_are_filtered_by_declaration(entry, root_name, *, star=False):
    """Silently changes what a session gets."""
    return entry.unavailable is None and is_default_in_rule(entry, root_name, star=star)


@variant("harness.reference.selection.session:create", catches=("catalog-default-in-roots-only-defaults",))
def defaults_are_an_allow_list(requested, root_defaults, catalog):
    """A root may pick its own defaults alone."""
    return create_rule(requested, root_defaults, tuple(root_defaults))


@variant("harness.reference.selection.session:backfill", catches=("catalog-default-in-roots-only-defaults",))
def new_defaults_reach_old_sessions(session, root_defaults, catalog):
    """A session grows when the catalog does."""
    kept = backfill_rule(session, root_defaults, catalog)
    return kept._replace(chosen=tuple(dict.fromkeys([*kept.chosen, *root_defaults])))


def shipped_with(name: str, **fields: Any) -> dict[str, Any]:
    """The shipped catalog with one entry changed."""
    tree = shipped_catalog_rule()
    return {**tree, name: {**tree[name], **fields}}


@variant(SHIPPED, catches=("catalog-sixteen-count",))
def the_older_fourteen_ship():
    """The ledger entries are missing."""
    tree = shipped_catalog_rule()
    return {name: raw for name, raw in tree.items() if name not in ("zimmer-gate-decisions", "zimmer-work-backlog")}


@variant(SHIPPED, catches=("catalog-sixteen-one-default-on",))
def a_second_default_ships():
    """The fleet entry is on for a root of its own."""
    return shipped_with("zimmer-fleet", default_in_roots=["fleet-maintenance"])


@variant(SHIPPED, catches=("catalog-sixteen-playwright-entry", "catalog-sixteen-valid"))
def env_values_ship_as_booleans():
    """Codex refuses them."""
    return shipped_with("playwright-custom", env={"STEALTH_MODE": False, "HEADLESS": True})


@variant(SHIPPED, catches=("catalog-sixteen-no-budget",))
def sample_budgets_ship():
    """An example goes into production."""
    return shipped_with("linear", startup_timeout_sec=60)


@variant(SHIPPED, catches=("catalog-sixteen-npx-bare",))
def a_shell_starts_a_shipped_server():
    """No npx rule sees the package any more."""
    return shipped_with("linear", command="sh", args=["-c", "npx -y @tacticlaunch/mcp-linear@latest"])


@variant("harness.reference.readiness.probe:state_by_variables", catches=("catalog-sixteen-readiness-no-secrets",))
def unset_secrets_do_not_count(absent, unreachable):
    """Counts entries with unresolved variables as usable."""
    return


@variant(ENTRY + "read_entry", catches=("catalog-known-fields",))
def unknown_fields_change_the_title(name, raw):
    """An unknown field has an effect."""
    entry = read_entry_rule(name, raw)
    return replace(entry, title=f"{entry.title} (extended)") if set(raw) - KNOWN_FIELDS else entry
