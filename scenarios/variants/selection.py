"""Known-bad variants of the selection rules: old bugs, and plausible ones."""

from __future__ import annotations

from harness.reference.prepare.argv import prepare_argv
from harness.reference.selection import connection, patch, session
from harness.reference.selection.connection import connect as connect_rule
from harness.reference.selection.connection import connection_groups as connection_groups_rule
from harness.reference.selection.connection import domain_group as domain_group_rule
from harness.reference.selection.connection import group_tools as group_tools_rule
from harness.reference.selection.patch import clean as clean_rule
from harness.reference.selection.patch import edit_on_page as edit_on_page_rule
from harness.reference.selection.patch import patch as patch_rule
from harness.reference.selection.patch import refuse_form as refuse_form_rule
from harness.reference.selection.patch import refuse_unknown as refuse_unknown_rule
from harness.reference.selection.session import all_mcp_servers as all_mcp_servers_rule
from harness.reference.selection.session import union as union_rule
from harness.reference.selection.zimmer import inject as inject_rule
from harness.reference.selection.zimmer import is_zimmer_name as is_zimmer_name_rule
from harness.reference.selection.zimmer import retarget as retarget_rule
from harness.reference.selection.zimmer import retargeted_url as retargeted_url_rule
from harness.requirements.variants import variant

SESSION = "harness.reference.selection.session"
PATCH = "harness.reference.selection.patch"
ZIMMER = "harness.reference.selection.zimmer"
CONNECTION = "harness.reference.selection.connection"


@variant(f"{SESSION}:seed", catches=("selection-seeded-from-root",))
def starts_empty(requested, root_defaults):
    """Gives a new session no server unless asked."""
    return session.Session(tuple(requested or ()))


@variant(f"{SESSION}:seed", catches=("selection-explicit-list-replaces",))
def joins_list_and_defaults(requested, root_defaults):
    """Adds the given list to the defaults."""
    return session.Session(union_rule(root_defaults, requested or ()))


@variant(f"{SESSION}:seed", catches=("selection-explicit-empty-means-none", "selection-only-arrays-explicit"))
def takes_an_empty_list_for_none_given(requested, root_defaults):
    """Restores the defaults of a session that wants no server."""
    return session.Session(tuple(requested or root_defaults))


@variant(f"{SESSION}:seed", catches=("selection-only-arrays-explicit",))
def lets_null_clear(requested, root_defaults):
    """Takes null for an empty list."""
    return session.Session(tuple(requested or ()), explicitly_empty=not requested)


@variant(f"{SESSION}:backfill", catches=("selection-owned-after-seeding", "selection-explicit-empty-means-none"))
def recomputes_from_the_root(stored, root_defaults, catalog):
    """Reads the root's defaults anew at every prepare."""
    return stored._replace(chosen=tuple(root_defaults))


@variant(f"{SESSION}:unknown_names", catches=("selection-create-unknown-refused",))
def leaves_unknown_names_to_the_prepare(names, catalog):
    """Accepts anything."""
    return ()


@variant(f"{SESSION}:seed", catches=("selection-names-in-order",))
def sorts_on_save(requested, root_defaults):
    """Stores the names in alphabetical order."""
    return session.Session(tuple(sorted(requested or root_defaults)))


@variant("harness.reference.prepare.argv:prepare_argv", catches=("selection-flags-name-effective-set",))
def passes_only_the_chosen(runtime, clone, *, plugin_servers=(), **selections):
    """Leaves the servers of plugins to AIR."""
    return prepare_argv(runtime, clone, **selections)


@variant(f"{SESSION}:effective_servers", catches=("selection-plugin-readds",))
def drops_what_the_user_removed(stored):
    """Does not prepare a plugin's server that is not chosen."""
    return stored.chosen


@variant(f"{SESSION}:all_mcp_servers", catches=("selection-plugin-readds", "selection-all-is-union"))
def hides_plugin_servers(stored):
    """Shows chosen and injected servers only."""
    return union_rule(stored.chosen, stored.injected)


@variant(f"{SESSION}:union", catches=("selection-all-is-union",))
def keeps_duplicates(*lists):
    """Shows a server twice when two sources bring it."""
    return tuple(name for names in lists for name in names)


@variant(
    f"{SESSION}:record_injected",
    catches=("selection-three-json-fields", "selection-injected-not-chosen", "selection-injected-recorded"),
)
def folds_injected_into_chosen(stored, injected):
    """The next PATCH of the list that was read fails, or pins the injected servers."""
    return stored._replace(chosen=(*stored.chosen, *injected))


@variant(f"{SESSION}:session_json", catches=("selection-injected-recorded",))
def computes_injected_from_names(stored):
    """Takes every name that starts with zimmer for an injected one."""
    shown = all_mcp_servers_rule(stored)
    injected = [name for name in shown if name.startswith("zimmer")]
    return {
        "mcp_servers": list(stored.chosen),
        "injected_mcp_servers": injected,
        "all_mcp_servers": list(shown),
    }


@variant(f"{PATCH}:clean", catches=("selection-patch-mutates", "selection-names-in-order"))
def sorts_the_names(requested):
    """Loses the order the caller gave."""
    return tuple(sorted(clean_rule(requested)))


@variant(f"{PATCH}:patch", catches=("selection-patch-mutates", "selection-patch-clear"))
def merges_with_the_old_list(body, before, catalog_names, status=None, *, explicitly_empty=False):
    """Nothing that was once picked can be removed."""
    merged = [*before, *(body.get("mcp_servers") or ())]
    if not isinstance(body.get("mcp_servers"), list):
        merged = list(before)
    return patch_rule({"mcp_servers": merged}, before, catalog_names, status, explicitly_empty=explicitly_empty)


@variant(f"{PATCH}:refuse_form", catches=("selection-patch-max-50", "selection-patch-count-before-clean"))
def sets_no_limit(requested):
    """Takes any number of servers."""
    return None if isinstance(requested, list) else refuse_form_rule(requested)


@variant(f"{PATCH}:refuse_form", catches=("selection-patch-count-before-clean",))
def counts_after_cleaning(requested):
    """Blanks do not count towards the limit."""
    return refuse_form_rule(list(clean_rule(requested)) if isinstance(requested, list) else requested)


@variant(f"{PATCH}:refuse_form", catches=("selection-patch-max-50",))
def refuses_the_fiftieth(requested):
    """The limit is off by one."""
    return refuse_form_rule([*requested, ""] if isinstance(requested, list) else requested)


@variant(f"{PATCH}:cleaned_name", catches=("selection-patch-order-of-checks",))
def names_are_taken_as_sent(item):
    """Asks the catalog for a name with blanks around it, and for one of any length."""
    return item if isinstance(item, str) else "" if item is None else str(item)


@variant(f"{PATCH}:patch", catches=("selection-patch-order-of-checks",))
def reports_unknown_names_first(body, before, catalog_names, status=None, *, explicitly_empty=False):
    """Asks the catalog before it looks at the form of the list."""
    unknown = refuse_unknown_rule(clean_rule(body.get("mcp_servers")), catalog_names)
    if unknown is not None:
        return patch.PatchAnswer(422, *unknown, tuple(before), explicitly_empty, dict(status or {}))
    return patch_rule(body, before, catalog_names, status, explicitly_empty=explicitly_empty)


@variant(f"{PATCH}:requested_list", catches=("selection-patch-clear",))
def wants_the_key(body):
    """Refuses a PATCH without a list."""
    return body.get("mcp_servers")


@variant(f"{PATCH}:PatchAnswer.body", catches=("selection-patch-no-availability-gate",))
def warns_in_the_body(answer):
    """Adds readiness warnings that belong to the creating paths."""
    return {"message": answer.message, "warnings": [f"{name} cannot start" for name in answer.mcp_servers]}


@variant(f"{PATCH}:log_line", catches=("selection-patch-log-and-status",))
def logs_every_patch(before, after):
    """Writes a line although nothing changed."""
    return f"MCP servers updated via API (added: {', '.join(after)}; removed: {', '.join(before)})"


@variant(f"{PATCH}:edit_on_page", catches=("selection-ui-mutates",))
def writes_a_list_of_the_pages_own(stored, names, catalog_names):
    """The page keeps an override that the API does not see."""
    answer = edit_on_page_rule(stored, names, catalog_names).answer
    return patch.Changed(answer, stored)


@variant(f"{PATCH}:edit_on_page", catches=("selection-ui-mutates",))
def checks_nothing_on_the_page(stored, names, catalog_names):
    """The page takes names that the catalog does not have."""
    return edit_on_page_rule(stored, names, names)


@variant(f"{ZIMMER}:inject", catches=("selection-auto-injected", "selection-injected-synthesised"))
def injects_only_beside_other_servers(existing, default_subagent_roots, base_url):
    """A session without servers of its own gets none at all."""
    return inject_rule(existing, default_subagent_roots, base_url) if existing else {}


@variant(f"{ZIMMER}:inject", catches=("selection-injected-synthesised",))
def leaves_a_catalogs_copy_in_place(existing, default_subagent_roots, base_url):
    """An entry of that name, wherever it points, keeps the injected one out."""
    injected = inject_rule(existing, default_subagent_roots, base_url)
    return {name: url for name, url in injected.items() if name not in existing}


@variant(f"{ZIMMER}:inject", catches=("selection-injected-names",))
def injects_zimmer_for_every_root(existing, default_subagent_roots, base_url):
    """Gives every session the power to start others."""
    return {"zimmer": f"{base_url}/mcp", **inject_rule(existing, default_subagent_roots, base_url)}


@variant(f"{ZIMMER}:inject", catches=("selection-zimmer-entries-deliberate",))
def injects_a_scoped_entry_as_well(existing, default_subagent_roots, base_url):
    """Attaches zimmer-sessions without being asked."""
    injected = inject_rule(existing, default_subagent_roots, base_url)
    return {**injected, "zimmer-sessions": f"{base_url}/mcp?tool_groups=sessions"}


@variant(f"{ZIMMER}:inject", catches=("selection-existing-zimmer-kept",))
def narrows_an_existing_zimmer(existing, default_subagent_roots, base_url):
    """Overwrites the chosen entry with the restricted one."""
    return inject_rule({}, default_subagent_roots, base_url)


@variant(
    f"{ZIMMER}:injected_url",
    catches=(
        "selection-self-session-powers",
        "selection-self-session-url",
        "selection-subagent-entry-url",
        "selection-auto-injected",
    ),
)
def leaves_the_url_unscoped(base_url, tool_groups=None, allowed_agent_roots=None):
    """Every session gets the whole instance."""
    return f"{base_url}/mcp"


@variant(f"{ZIMMER}:injected_entry", catches=("selection-injected-transport",))
def writes_a_stdio_proxy(runtime, url, api_key):
    """Starts a process in between."""
    return {"type": "stdio", "command": "npx", "args": ["-y", "mcp-remote", url]}


@variant(f"{ZIMMER}:injected_entry", catches=("selection-injected-transport",))
def writes_one_shape_for_all_runtimes(runtime, url, api_key):
    """Codex gets a type and a header table that it does not know."""
    return {"type": "http", "url": url, "headers": {"X-API-Key": api_key}}


@variant(f"{ZIMMER}:injected_entry", catches=("selection-injected-no-secret-chain",))
def takes_the_catalogs_placeholder(runtime, url, api_key):
    """A missing secret fails a session that chose no server."""
    return {"type": "http", "url": url, "headers": {"X-API-Key": "${ZIMMER_PROD_API_KEY}"}}


@variant(f"{ZIMMER}:covers_self_session", catches=("selection-self-session-covered",))
def takes_any_zimmer_entry_as_cover(name, url):
    """A session with zimmer-sessions alone cannot archive itself."""
    return is_zimmer_name_rule(name)


@variant(f"{ZIMMER}:is_zimmer_name", catches=("selection-retarget-by-name",))
def matches_any_name_that_starts_so(name):
    """Moves zimmerman to this instance."""
    return name.lower().startswith("zimmer")


@variant(f"{ZIMMER}:retarget", catches=("selection-retarget-every-zimmer",))
def retargets_only_the_injected(name, entry, instance):
    """A staging session orchestrates production through a chosen entry."""
    return retarget_rule(name, entry, instance) if name == "zimmer-self-session" else dict(entry)


@variant(f"{ZIMMER}:retargeted_url", catches=("selection-retarget-every-zimmer",))
def drops_the_query(url, base_url):
    """Widens a scoped entry to the whole instance."""
    return retargeted_url_rule(url, base_url).partition("?")[0]


@variant(f"{ZIMMER}:retargeted_headers", catches=("selection-retarget-key", "selection-retarget-every-zimmer"))
def keeps_the_production_key(entry, api_key):
    """Sends production's key to this instance."""
    return dict(entry)


@variant(f"{ZIMMER}:is_key_header", catches=("selection-retarget-key",))
def knows_one_spelling_of_the_key(name):
    """Leaves the other instance's key under another spelling."""
    return name == "X-API-Key"


@variant(f"{ZIMMER}:Instance.production", catches=("selection-retarget-production-noop",))
def retargets_on_production_too(instance):
    """Rewrites the catalog's own entries on production."""
    return False


@variant(f"{ZIMMER}:variable_prefix", catches=("selection-retarget-targets",))
def uses_one_set_of_variables(environment):
    """Reads production's variables everywhere."""
    return "ZIMMER_PROD"


@variant(f"{CONNECTION}:named_groups", catches=("selection-scope-in-url",))
def reads_no_scope_from_the_url(url):
    """Expects the scope in a header."""
    return


@variant(f"{CONNECTION}:group_tools", catches=("selection-gate-separate",))
def puts_the_ledger_into_sessions(group):
    """Whoever starts sessions can write gate ratings."""
    return (*group_tools_rule(group), *(connection.LEDGER_TOOLS if group == "sessions" else ()))


@variant(
    f"{CONNECTION}:unscoped_groups",
    catches=("selection-gate-opt-in", "selection-gate-only-entry", "selection-backlog-opt-in"),
)
def carries_every_group_when_unscoped():
    """The unscoped zimmer entry reaches ledger and backlog."""
    return (*connection.BASE_GROUPS, *connection.OPT_IN_GROUPS)


@variant(f"{CONNECTION}:call", catches=("selection-groups-not-listed-not-callable",))
def calls_what_is_not_listed(connected, tool):
    """Filters the list only."""
    return connection.ToolAnswer(allowed=True)


@variant(f"{CONNECTION}:group_tools", catches=("selection-readonly-variants",))
def lets_readonly_groups_write(group):
    """Drops the suffix and gives every tool."""
    return group_tools_rule(domain_group_rule(group))


@variant(f"{CONNECTION}:connection_groups", catches=("selection-unknown-groups-dropped",))
def widens_a_misspelt_scope(url):
    """Falls back to the base groups when no name is known."""
    return connection_groups_rule(url) or connection.BASE_GROUPS


@variant(f"{CONNECTION}:session_actions", catches=("selection-self-session-narrowed",))
def gives_self_session_the_full_tool(groups):
    """The agent may act on other sessions."""
    return connection.FULL_ACTIONS


@variant(f"{CONNECTION}:connect", catches=("selection-scope-from-query-only",))
def merges_the_bodys_parameters(url, body=None):
    """A request widens its own scope."""
    found = connect_rule(url)
    named = str((body or {}).get("tool_groups", ""))
    return found._replace(groups=(*found.groups, *filter(None, named.split(","))))


@variant("harness.reference.prepare.pipeline:left_over", catches=("selection-patch-not-in-place",))
def leaves_the_removed_server_in_the_file(request):
    """The next preparation writes half of the change."""
    return request.earlier.injected
