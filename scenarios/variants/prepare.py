"""Known-bad variants of a preparation: files, merging, budgets, injection, secrets, the spawn."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from harness import preparation
from harness.reference.catalog import startup_timeout
from harness.reference.catalog.entry import Entry
from harness.reference.npx.layout import shared_cache
from harness.reference.prepare import (
    argv,
    budgets,
    codex_document,
    documents,
    failures,
    json_document,
    pipeline,
    request,
    seeding,
    spawn,
)
from harness.reference.prepare.request import FileWrite
from harness.reference.secrets import placeholders
from harness.reference.secrets.interpolator import resolve_entry
from harness.reference.secrets.loader import StoreUnavailableError
from harness.reference.secrets.placeholders import MissingVariableError
from harness.reference.selection import session as selection_session
from harness.requirements.variants import variant

accept_rule = startup_timeout.accept
air_error_rule = failures.air_error
classify_error_rule = failures.classify_error
classify_stderr_rule = failures.classify_stderr
claude_entry_budget = pipeline.with_budget
claude_spawn_rule = spawn.claude_spawn
codex_seconds_rule = budgets.codex_seconds
codex_spawn_rule = spawn.codex_spawn
codex_table_rule = budgets.codex_table
finished_rule = pipeline.finished
from_air_rule = seeding.from_air
inject_only_rule = pipeline.inject_only
json_read_rule = json_document.read
json_write_rule = json_document.write
merge_rule = seeding.merge
open_document_rule = documents.open_document
pi_entry_rule = budgets.pi_entry
pin_npx_caches_rule = pipeline.pin_npx_caches
prepare_argv_rule = argv.prepare_argv
prepare_rule = pipeline.prepare
record_injected_rule = selection_session.record_injected
render_rule = codex_document.render
require_rule = pipeline.require_variables
resolve_rule = pipeline.resolve_secrets
run_air_rule = preparation.run_air
retargeted_rule = pipeline.retargeted
run_step_rule = pipeline.run_step
seed_rule = seeding.seed
seeded_entry_rule = seeding.seeded_entry
selected_rule = request.selected_servers
step_order_rule = pipeline.step_order
toml_read_rule = codex_document.read
write_document_rule = documents.write_document


# --- files and formats


@variant(
    "harness.reference.prepare.pipeline:finished",
    catches=("prepare-file-per-runtime", "prepare-claude-never-settings-json"),
)
def servers_go_to_settings_json_as_well(draft, document, request, steps):
    """Writes the servers into Claude's settings, where they register nothing."""
    done = finished_rule(draft, document, request, steps)
    return replace(done, writes=(*done.writes, FileWrite(".claude/settings.json", done.writes[0].text, None)))


@variant("harness.reference.prepare.json_document:write", catches=("prepare-claude-json-format",))
def json_is_sorted(content):
    """Sorts servers by name and top-level keys with them."""
    servers = dict(sorted(content.get("mcpServers", {}).items()))
    return json_write_rule(dict(sorted({**content, "mcpServers": servers}.items())))


@variant("harness.reference.prepare.codex_document:render", catches=("prepare-codex-toml-format",))
def toml_is_written_from_scratch(text, content, servers, settings, *, file):
    """Keeps the values and loses comments, order and the user's tables."""
    return render_rule("", {}, servers, settings, file=file)


@variant("harness.reference.prepare.seeding:from_air", catches=("prepare-http-entry-shape",))
def remote_entries_lose_their_type(names, translated, catalog):
    """Claude skips a url without a type; Codex ignores `headers`."""
    sources = from_air_rule(names, translated, catalog)
    renamed = {
        name: {("headers" if key == "http_headers" else key): value for key, value in entry.items() if key != "type"}
        for name, entry in sources.entries.items()
    }
    return sources._replace(entries=renamed)


@variant("harness.reference.prepare.pipeline:pin_npx_caches", catches=("prepare-stdio-entry-shape",))
def npx_is_rewritten_with_a_prefix(draft, request):
    """An old workaround that broke the linking of bins."""
    servers = {
        name: {**entry, "args": ["--prefix", "/tmp", *entry.get("args", [])]}
        if isinstance(entry, dict) and entry.get("command") == "npx"
        else entry
        for name, entry in draft.servers.items()
    }
    return replace(draft, servers=servers)


@variant(
    "harness.reference.prepare.pipeline:pin_npx_caches",
    catches=("npx-cache-pinned-per-entry", "npx-pin-not-inherited"),
)
def claude_inherits_the_cache(draft, request):
    """Skips Claude, whose process exports the variable anyway."""
    return draft if request.runtime == "claude" else pin_npx_caches_rule(draft, request)


@variant(
    "harness.reference.prepare.pipeline:pin_npx_caches",
    catches=("npx-cache-pinned-per-entry", "npx-pin-not-inherited", "npx-isolate-all-runtimes"),
)
def claude_alone_is_pinned(draft, request):
    """Expects the servers of Codex and Pi to inherit a variable that nobody sets there."""
    return pin_npx_caches_rule(draft, request) if request.runtime == "claude" else draft


@variant(
    "harness.reference.prepare.pipeline:pin_npx_caches",
    catches=("npx-isolate-stable-across-prepare", "prepare-idempotent"),
)
def the_isolated_path_grows(draft, request):
    """Appends `/isolated/<server>` to the earlier value."""
    servers = {}
    for name, entry in draft.servers.items():
        if isinstance(entry, dict) and entry.get("command") == "npx" and isinstance(entry.get("env", {}), dict):
            before = entry.get("env", {}).get("NPM_CONFIG_CACHE") or shared_cache(request.clone)
            servers[name] = {**entry, "env": {**entry.get("env", {}), "NPM_CONFIG_CACHE": f"{before}/isolated/{name}"}}
        else:
            servers[name] = entry
    return replace(draft, servers=servers)


@variant("harness.reference.prepare.pipeline:step_order", catches=("npx-pin-after-secrets", "prepare-step-order"))
def caches_are_pinned_before_the_secrets(runtime):
    """Scans the path of the clone for placeholders."""
    steps = [step for step in step_order_rule(runtime) if step != "pin_npx_caches"]
    return (*steps[:-2], "pin_npx_caches", *steps[-2:])


@variant("harness.reference.prepare.seeding:seed", catches=("prepare-pi-seeds-itself", "catalog-air-pi-no-mcp"))
def pi_is_not_seeded(names, catalog):
    """Post-processes only what AIR wrote, which for Pi is nothing."""
    return seeding.Sources({}, ())


@variant(
    "harness.reference.prepare.seeding:merge",
    catches=("prepare-pi-seed-existing-wins", "startup-timeout-local-value-wins", "prepare-local-values-merge"),
)
def seeding_overwrites(present, entries, owned, *, overwrites):
    """Replaces the entry that the repository wrote."""
    return {**present, **entries}


@variant("harness.reference.prepare.documents:open_document", catches=("prepare-local-values-merge",))
def the_file_is_made_from_the_catalog_only(request):
    """Loses the servers that the repository checked in."""
    return open_document_rule(request)._replace(servers={})


@variant("harness.reference.prepare.pipeline:with_budget", catches=("startup-timeout-refusal-not-fatal",))
def a_refused_budget_ends_the_preparation(name, entry, request):
    """Validates the declaration where it should be ignored."""
    declared = request.catalog.entries[name].raw.get("startup_timeout_sec") if name in request.catalog.entries else None
    if accept_rule(declared).refused is not None:
        raise failures.PreparationError(f"{name}: startup_timeout_sec is not valid")
    return claude_entry_budget(name, entry, request)


@variant(
    "harness.reference.prepare.pipeline:with_budget",
    catches=("startup-timeout-codex-fast-beside-slow", "startup-timeout-codex-startup-scoped"),
)
def every_table_gets_the_largest_budget(name, entry, request):
    """Writes one number for all servers of a session, as Claude's process has it."""
    declared = [accept_rule(each.raw.get("startup_timeout_sec")).seconds for each in request.catalog.entries.values()]
    written = claude_entry_budget(name, entry, request)
    if request.runtime != "codex" or not isinstance(written, dict) or "startup_timeout_sec" not in written:
        return written
    return {**written, "startup_timeout_sec": max(seconds or startup_timeout.SECONDS for seconds in declared)}


@variant(
    "harness.reference.prepare.seeding:seed", catches=("prepare-pi-seed-skips-unusable", "prepare-prompt-config-agree")
)
def unusable_names_go_unsaid(names, catalog):
    """Skips without a warning."""
    return seed_rule(names, catalog)._replace(warnings=())


@variant("harness.reference.prepare.seeding:seeded_type", catches=("prepare-pi-seed-shape",))
def sse_is_announced_as_http(entry):
    """Sends an SSE server to the other transport."""
    return "http"


@variant("harness.reference.prepare.seeding:missing_member", catches=("catalog-http-alias-everywhere",))
def http_is_not_remote(entry):
    """Takes `http` for a stdio entry without a command."""
    return "command" if entry.type == "http" else None


@variant(
    "harness.reference.prepare.pipeline:leaves_file_alone",
    catches=("prepare-synthesizes-missing-file", "prepare-injected-are-synthesized", "selection-injected-synthesised"),
)
def a_missing_file_is_skipped(draft, document, request):
    """Skips everything where AIR wrote no file."""
    return not pipeline.takes_full_path(request)


@variant("harness.reference.prepare.pipeline:leaves_file_alone", catches=("prepare-baseline-noop",))
def the_file_is_rewritten_anyway(draft, document, request):
    """Goes on when nothing was injected."""
    return False


@variant("harness.reference.prepare.documents:open_document", catches=("prepare-malformed-local-file",))
def an_unreadable_file_counts_as_empty(request):
    """Destroys the repository's file."""
    try:
        return open_document_rule(request)
    except failures.MalformedConfigError:
        return documents.skeleton("mcpServers" if request.runtime != "codex" else "mcp_servers")


@variant("harness.reference.prepare.documents:in_earlier_order", catches=("prepare-idempotent",))
def keys_move_at_each_preparation(before, after):
    """Puts the keys that were there last."""
    return {
        name: dict(reversed(entry.items())) if isinstance(entry, dict) and name in before else entry
        for name, entry in after.items()
    }


@variant("harness.reference.prepare.documents:write_document", catches=("prepare-deterministic",))
def servers_follow_the_catalogs_order(document, servers, own, request):
    """Takes the order of the loaded catalog instead of the session's."""
    order = [name for name in request.catalog.entries if name in servers]
    ordered = {name: servers[name] for name in (*order, *servers)}
    return write_document_rule(document, ordered, own, request)


@variant("harness.reference.prepare.request:selected_servers", catches=("prepare-deterministic",))
def names_come_from_a_set(request):
    """Writes the servers in an order that changes with the process."""
    return tuple({*request.chosen, *request.plugin_servers})


@variant("harness.reference.prepare.json_document:write", catches=("prepare-empty-servers-key",))
def an_empty_table_is_left_out(content):
    """Writes `{}`, which is a file-level error to Claude."""
    return json_write_rule({key: value for key, value in content.items() if value != {}})


@variant("harness.reference.prepare.documents:write_document", catches=("prepare-secret-file-mode",))
def a_file_with_keys_is_world_readable(document, servers, own, request):
    """Creates the file with the default mode."""
    written = write_document_rule(document, servers, own, request)
    return written._replace(write=written.write._replace(mode=0o644))


@variant("harness.reference.prepare.codex_tables:refusal", catches=("prepare-codex-entry-validated",))
def any_table_is_written(name, entry):
    """Writes what takes the whole config down."""
    return


@variant("harness.reference.prepare.documents:accepted_tables", catches=("prepare-prompt-config-agree",))
def a_refused_table_goes_unsaid(document, servers, own):
    """Leaves a name out without a warning."""
    taken = {
        n: e for n, e in servers.items() if isinstance(e, dict) and ("command" in e) != ("url" in e) and "." not in n
    }
    return taken, ()


@variant("harness.reference.prepare.pipeline:reserved_warnings", catches=("prepare-claude-reserved-names",))
def reserved_names_go_unsaid(servers, runtime):
    """Says nothing about a server that Claude will not load."""
    return ()


@variant("harness.reference.prepare.documents:duplicate_warnings", catches=("prepare-duplicate-json-keys",))
def duplicates_go_unsaid(keys):
    """Drops the first of two entries silently."""
    return ()


@variant(
    "harness.reference.prepare.pipeline:add_elicitation",
    catches=("prepare-elicitation-env", "prepare-env-not-a-table-skipped"),
)
def elicitation_replaces_the_env(draft, request):
    """Loses the entry's own variables."""
    servers = {
        name: {**entry, "env": dict(request.elicitation)} if isinstance(entry, dict) and request.elicitation else entry
        for name, entry in draft.servers.items()
    }
    return replace(draft, servers=servers)


# --- budgets


@variant("harness.reference.prepare.pipeline:with_budget", catches=("prepare-claude-no-entry-timeout-key",))
def claude_gets_a_key_of_its_own(name, entry, request):
    """Tries to honour a short budget through an entry key that Claude ignores."""
    if request.runtime != "claude" or not isinstance(entry, dict):
        return claude_entry_budget(name, entry, request)
    return {**entry, "startupTimeoutSec": 20}


@variant(
    "harness.reference.prepare.pipeline:with_budget",
    catches=(
        "prepare-budget-default-180",
        "prepare-codex-default-stdio",
        "prepare-pi-default-stdio",
        "startup-timeout-air-does-not-carry",
        "prepare-air-does-not-carry-budget",
        "prepare-baseline-path-budgets",
        "prepare-non-table-entry-skipped",
        "startup-timeout-default-hang-held",
        "npx-cold-clone-fits-budget",
    ),
)
def runtimes_are_left_to_their_own_default(name, entry, request):
    """Writes no budget at all on Codex and Pi."""
    return entry


@variant("harness.reference.prepare.budgets:pi_seconds", catches=("prepare-budget-single-constant",))
def pi_has_a_literal_of_its_own(accepted_seconds, *, starts_command):
    """Drifts away from the constant."""
    if accepted_seconds is not None and accepted_seconds > 180:
        return accepted_seconds
    return 180 if starts_command else None


@variant("harness.reference.catalog.startup_timeout:milliseconds", catches=("prepare-budget-units",))
def milliseconds_are_seconds(seconds):
    """Gives every Pi server 180 ms."""
    return seconds


@variant("harness.reference.catalog.startup_timeout:accept", catches=("prepare-budget-accepted-range",))
def any_number_is_accepted(value):
    """Takes 60.0, "20", true and what lies outside the bounds."""
    if isinstance(value, bool | int | float | str) and str(value).removeprefix("-").replace(".", "").isdigit():
        return startup_timeout.Accepted(int(float(value)), None)
    return accept_rule(value)


@variant("harness.reference.prepare.budgets:codex_seconds", catches=("prepare-codex-default-not-http",))
def codex_widens_remote_entries(accepted_seconds, *, starts_command):
    """Delays the news of an unreachable URL by three minutes."""
    return codex_seconds_rule(accepted_seconds, starts_command=True)


@variant("harness.reference.prepare.budgets:pi_seconds", catches=("prepare-pi-default-not-http",))
def pi_widens_remote_entries(accepted_seconds, *, starts_command):
    """Writes the default onto every entry."""
    return max(accepted_seconds or 0, startup_timeout.SECONDS)


@variant("harness.reference.prepare.budgets:codex_seconds", catches=("prepare-codex-declared-both-ways",))
def codex_is_floored_like_claude(accepted_seconds, *, starts_command):
    """Takes 180 for the least."""
    seconds = codex_seconds_rule(accepted_seconds, starts_command=starts_command)
    return None if seconds is None else max(seconds, startup_timeout.SECONDS)


@variant("harness.reference.prepare.budgets:codex_seconds", catches=("prepare-codex-declared-on-remote",))
def codex_asks_for_a_command_first(accepted_seconds, *, starts_command):
    """Gives remote entries nothing, declared or not."""
    return codex_seconds_rule(accepted_seconds, starts_command=starts_command) if starts_command else None


@variant("harness.reference.prepare.budgets:codex_table", catches=("prepare-codex-tool-timeout-untouched",))
def codex_writes_both_keys(entry, declared_raw):
    """Sets the budget of tool calls along."""
    table = codex_table_rule(entry, declared_raw)
    return {**table, "tool_timeout_sec": 180} if isinstance(table, dict) and "command" in table else table


@variant(
    "harness.reference.prepare.budgets:has_local_budget",
    catches=(
        "prepare-codex-local-sec-wins",
        "prepare-codex-local-ms-wins",
        "prepare-pi-local-value-wins",
        "startup-timeout-local-value-wins",
        "prepare-own-earlier-value-sticks",
        "startup-timeout-earlier-prepare-wins",
    ),
)
def the_catalog_beats_the_file(entry, keys):
    """Refreshes a value in place, the repository's own as well."""
    return False


FIRST_BUDGETS: dict[tuple[str, ...], object] = {}


@variant("harness.reference.prepare.pipeline:prepare", catches=("startup-timeout-regenerated-picks-new",))
def the_first_budget_is_cached(request):
    """Remembers a clone's first declaration outside the file, so that deleting the file does not help."""
    entries = {
        name: replace(entry, raw={**entry.raw, "startup_timeout_sec": first_budget(request, entry)})
        for name, entry in request.catalog.entries.items()
    }
    return prepare_rule(replace(request, catalog=replace(request.catalog, entries=entries)))


def first_budget(request: request.PrepareRequest, entry: Entry) -> object:
    """What the catalog declared when this clone was first prepared."""
    place = (request.runtime, request.clone, entry.name)
    return FIRST_BUDGETS.setdefault(place, entry.raw.get("startup_timeout_sec"))


@variant("harness.reference.prepare.budgets:pi_seconds", catches=("prepare-pi-only-lengthens",))
def pi_shortens_too(accepted_seconds, *, starts_command):
    """Caps every tool call of the server at its startup budget."""
    return codex_seconds_rule(accepted_seconds, starts_command=starts_command)


@variant("harness.reference.prepare.budgets:pi_seconds", catches=("prepare-pi-declared-long-on-remote",))
def pi_lengthens_stdio_only(accepted_seconds, *, starts_command):
    """Leaves a remote server at its sixty seconds."""
    return max(accepted_seconds or 0, startup_timeout.SECONDS) if starts_command else None


@variant("harness.reference.prepare.json_document:write", catches=("prepare-pi-no-global-setting",))
def pi_gets_one_global_key(content):
    """Widens every entry, remote ones included."""
    return json_write_rule({**content, "settings": {"requestTimeoutMs": 180_000}})


@variant(
    "harness.reference.prepare.spawn:claude_mcp_variables",
    catches=("prepare-claude-timeout-env", "prepare-spawn-claude-mcp-env"),
)
def claude_gets_no_budget_and_the_users_cache(clone, catalog, mcp_json):
    """Leaves the process to its own thirty seconds, and its servers to a cache that all clones share."""
    return {"NPM_CONFIG_CACHE": "/home/user/.npm"}


@variant("harness.reference.prepare.spawn:claude_spawn", catches=("prepare-claude-timeout-beats-dotenv",))
def the_dotenv_beats_the_budget(parent, dotenv, clone, catalog, *, mcp_json, has_mcp):
    """Gives every server of the clone the one second that its `.env` names."""
    spawned = claude_spawn_rule(parent, dotenv, clone, catalog, mcp_json=mcp_json, has_mcp=has_mcp)
    return spawned._replace(variables={**spawned.variables, **dotenv})


@variant("harness.reference.prepare.spawn:claude_spawn", catches=("prepare-spawn-claude-mcp-env",))
def the_cache_is_exported_and_not_created(parent, dotenv, clone, catalog, *, mcp_json, has_mcp):
    """Names a directory that is not there, and leaves out the guard."""
    spawned = claude_spawn_rule(parent, dotenv, clone, catalog, mcp_json=mcp_json, has_mcp=has_mcp)
    return spawned._replace(directories=(), runs_bin_guard=False)


@variant(
    "harness.reference.prepare.spawn:claude_spawn",
    catches=("prepare-claude-timeout-env", "prepare-spawn-claude-mcp-env"),
)
def every_claude_spawn_gets_the_variables(parent, dotenv, clone, catalog, *, mcp_json, has_mcp):
    """Sets budget and cache for a session without servers as well."""
    return claude_spawn_rule(parent, dotenv, clone, catalog, mcp_json=mcp_json, has_mcp=True)


@variant("harness.reference.prepare.budgets:process_seconds", catches=("prepare-claude-timeout-max",))
def the_smallest_budget_decides(accepted_seconds):
    """Lets one fast server starve the others."""
    return min([startup_timeout.SECONDS, *accepted_seconds])


@variant("harness.reference.prepare.budgets:server_names", catches=("prepare-claude-timeout-covers-injected",))
def no_name_of_the_file_counts(mcp_json_text):
    """Looks at a list that misses the plugins' servers."""
    return ()


# --- selection and injection


@variant(
    "harness.reference.prepare.pipeline:inject_only",
    catches=("prepare-inject-self-session", "prepare-injected-recorded"),
)
def nothing_is_injected(name, draft, request):
    """Leaves the agent unable to archive itself."""
    return draft


@variant(
    "harness.reference.prepare.pipeline:inject_only",
    catches=("prepare-injected-are-synthesized", "selection-injected-synthesised"),
)
def injected_servers_are_looked_up(name, draft, request):
    """Injects what the catalog holds under the name, and nothing where it holds none or cannot be read."""
    return draft if request.catalog.find(name) is None else inject_only_rule(name, draft, request)


@variant("harness.reference.selection.zimmer:covers_self_session", catches=("prepare-inject-self-session-covered",))
def any_name_with_the_prefix_covers(name, url):
    """Takes `zimmerman` for one of Zimmer's."""
    return name.startswith("zimmer")


@variant("harness.reference.prepare.pipeline:inject_only", catches=("prepare-inject-subagent-server",))
def the_catalogs_entry_is_narrowed(name, draft, request):
    """Overwrites a full `zimmer` entry with the restricted one."""
    servers = {server: entry for server, entry in draft.servers.items() if server != name}
    return inject_only_rule(name, replace(draft, servers=servers), request)


@variant("harness.reference.selection.zimmer:injected_entry", catches=("selection-injected-transport",))
def injected_servers_are_proxies(runtime, url, api_key):
    """Starts a process that forwards to the endpoint."""
    return {"command": "mcp-remote", "args": [url]}


@variant("harness.reference.selection.session:custom_metadata", catches=("prepare-injected-recorded",))
def nothing_injected_is_recorded_as_an_empty_list(session):
    """Stores the key for every session, so that an old one seems to have been prepared."""
    return {"injected_mcp_servers": list(session.injected)}


@variant(
    "harness.reference.prepare.pipeline:retargeted",
    catches=("prepare-retarget-zimmer", "selection-staging-never-production"),
)
def local_zimmer_entries_stay(name, entry, request):
    """Lets a staging session orchestrate production."""
    return entry


@variant(
    "harness.reference.prepare.pipeline:points_elsewhere",
    catches=("prepare-retarget-zimmer", "selection-staging-never-production"),
)
def a_file_of_nothing_but_local_entries_stays(draft, request):
    """Writes nothing where nothing was injected, so the repository's own entry still leads to production."""
    return False


@variant("harness.reference.selection.zimmer:retargeted_headers", catches=("prepare-retarget-drops-forwarded-key",))
def the_forwarded_key_stays(entry, api_key):
    """Leaves the forwarding rule, which wins over the value."""
    return {**entry, "http_headers": {**entry.get("http_headers", {}), "X-API-Key": api_key}}


@variant("harness.reference.prepare.pipeline:blank_key_warnings", catches=("prepare-retarget-blank-key-warns",))
def a_blank_key_goes_unsaid(draft, request):
    """Every call then answers 401, and nobody knows why."""
    return ()


@variant("harness.reference.prepare.pipeline:resolve_secrets", catches=("selection-injected-no-secret-chain",))
def injected_entries_are_interpolated(draft, request):
    """Walks the entries that Zimmer made itself."""
    return replace(resolve_rule(replace(draft, injected=()), request), injected=draft.injected)


@variant(
    "harness.reference.prepare.argv:prepare_argv", catches=("prepare-without-defaults", "selection-without-defaults")
)
def root_defaults_come_back(runtime, clone, **selection):
    """Drops the flag."""
    return tuple(word for word in prepare_argv_rule(runtime, clone, **selection) if word != "--without-defaults")


@variant("harness.reference.prepare.argv:prepare_argv", catches=("prepare-argv-order",))
def plugin_servers_have_no_flag(runtime, clone, **selection):
    """Passes what plugins bundle through `--plugin` alone."""
    return prepare_argv_rule(runtime, clone, **{**selection, "plugin_servers": ()})


@variant("harness.reference.prepare.pipeline:takes_full_path", catches=("prepare-path-choice",))
def only_servers_count(request):
    """Takes the baseline path for a session with skills."""
    return bool(request.selected)


@variant("harness.reference.prepare.pipeline:takes_full_path", catches=("prepare-path-choice", "prepare-baseline-noop"))
def every_session_takes_the_full_path(request):
    """Rewrites the file of a session that selected nothing, and fails on what it does not resolve."""
    return True


@variant("harness.reference.prepare.pipeline:step_order", catches=("prepare-step-order",))
def secrets_are_resolved_before_retargeting(runtime):
    """Overwrites the local key with the catalog's, and aborts a staging preparation without the production key."""
    steps = [step for step in step_order_rule(runtime) if step != "resolve_secrets"]
    at = steps.index("retarget")
    return (*steps[:at], "resolve_secrets", *steps[at:])


@variant("harness.reference.prepare.pipeline:left_over", catches=("selection-removed-stays-removed",))
def stale_entries_stay(request):
    """Leaves what an earlier preparation wrote."""
    return request.earlier.injected


@variant("harness.reference.prepare.pipeline:left_over", catches=("prepare-idempotent",))
def earlier_injections_count_as_local(request):
    """Reports no injection the second time."""
    return tuple(name for name in request.earlier.owned if name not in request.selected)


@variant("harness.reference.prepare.request:selected_servers", catches=("selection-plugin-readds",))
def plugins_are_forgotten(request):
    """Writes the chosen list alone."""
    return tuple(dict.fromkeys(request.chosen))


@variant(
    "harness.reference.prepare.request:selected_servers",
    catches=("prepare-degraded-still-written", "unavailable-not-filtered-from-prepare"),
)
def failing_servers_are_left_out(request):
    """Drops what is recorded as degraded or declared unavailable, so that it can never come back."""
    entries = request.catalog.entries
    return tuple(
        name
        for name in selected_rule(request)
        if name not in request.degraded and (name not in entries or entries[name].unavailable is None)
    )


@variant("harness.reference.prepare.seeding:seed", catches=("selection-blast-radius",))
def the_whole_catalog_is_written(names, catalog):
    """Lets the agent choose."""
    return seed_rule(catalog.names, catalog)


@variant("harness.reference.selection.session:lost_servers", catches=("prepare-lost-servers-warning",))
def pending_placeholders_count_as_lost(selected, injected, statuses):
    """Counts what never connected."""
    return tuple(name for name in statuses or {} if name not in {*selected, *injected})


@variant("harness.reference.selection.session:record_injected", catches=("prepare-injected-recorded",))
def injected_names_become_chosen(session, injected):
    """Makes them the user's choice."""
    return session._replace(chosen=(*session.chosen, *injected))


@variant(
    "harness.reference.prepare.pipeline:pin_npx_caches", catches=("prepare-does-not-mutate-catalog", "catalog-readonly")
)
def the_catalogs_env_table_is_shared(draft, request):
    """Writes one session's cache into the catalog's own table."""
    for name, entry in request.catalog.entries.items():
        if name in draft.servers and isinstance(entry.raw.get("env"), dict):
            entry.raw["env"]["NPM_CONFIG_CACHE"] = shared_cache(request.clone)
    return draft


# --- secrets


@variant(
    "harness.reference.prepare.pipeline:resolve_secrets",
    catches=("prepare-secrets-joined-at-prepare", "secrets-joined-at-prepare"),
)
def placeholders_are_left_to_the_runtime(draft, request):
    """Claude then passes an unset one literally and starts the server."""
    return draft


@variant("harness.reference.prepare.seeding:carry_over", catches=("secrets-joined-at-prepare",))
def earlier_values_stay(earlier, fresh):
    """Keeps what was resolved when the session was created."""
    return dict(earlier)


@variant("harness.reference.prepare.seeding:carry_over", catches=("startup-timeout-stdio-default-only",))
def a_remote_entry_inherits_its_commands_budget(earlier, fresh):
    """Keeps what was written for the command when the catalog's entry has become a URL."""
    carried = {key: value for key, value in earlier.items() if key not in seeding.TRANSLATED_KEYS}
    return {**seeding.carried_cache(earlier, fresh), **carried}


@variant("harness.reference.prepare.seeding:carried_cache", catches=("npx-pin-operator-value-kept",))
def an_earlier_cache_beats_the_catalogs(earlier, fresh):
    """Takes the cache that an earlier preparation wrote for the operator's."""
    before = (earlier.get("env") or {}).get("NPM_CONFIG_CACHE")
    return dict(fresh) if before is None else {**fresh, "env": {**fresh.get("env", {}), "NPM_CONFIG_CACHE": before}}


@variant(
    "harness.preparation:run_air",
    catches=("secrets-typo-fails-at-prepare", "prepare-unresolved-fails-loudly", "secrets-failure-recorded"),
)
def airs_refusal_is_rescued(session, keeps_local_entries, codex_adapter):
    """Goes on without AIR's part when AIR refuses, and starts the agent without the servers."""
    try:
        return run_air_rule(session, keeps_local_entries, codex_adapter)
    except failures.PreparationError:
        return None


@variant("harness.preparation:run_air", catches=("secrets-no-rescue-per-entry",))
def a_broken_server_is_left_out_at_a_second_try(session, keeps_local_entries, codex_adapter):
    """Starts the rest without the server whose secret is missing, which readiness then misdescribes."""
    try:
        return run_air_rule(session, keeps_local_entries, codex_adapter)
    except failures.UnresolvedVariablesError:
        whole = tuple(name for name in session.chosen if resolves(session, name))
        return run_air_rule(replace(session, chosen=whole), keeps_local_entries, codex_adapter)


def resolves(session: request.PrepareRequest, name: str) -> bool:
    """Has each required variable of this server a value?"""
    required = placeholders.variables(session.catalog.require(name).raw).required
    return all(session.lookup(variable) for variable in required)


@variant(
    "harness.reference.prepare.pipeline:require_variables",
    catches=("secrets-fail-all-runtimes",),
)
def only_airs_check_counts(draft, request):
    """Codex starts a server without its key."""
    return


@variant(
    "harness.reference.prepare.pipeline:resolve_secrets",
    catches=("prepare-whole-file-or-nothing", "secrets-no-partial-config"),
)
def a_broken_entry_is_skipped(draft, request):
    """Writes the rest silently."""
    servers = {}
    for name, entry in draft.servers.items():
        try:
            servers[name] = resolve_entry(entry, request.lookup) if isinstance(entry, dict) else entry
        except MissingVariableError:
            continue
    return replace(draft, servers=servers)


@variant("harness.reference.prepare.failures:air_error", catches=("secrets-failure-recorded",))
def airs_refusal_names_no_variable(stderr):
    """Loses the reason, so that the session seems to be retried for something else."""
    return failures.AirFailedError("Error: JSON")


@variant("harness.reference.prepare.pipeline:resolve_secrets", catches=("secrets-fail-all-runtimes",))
def only_claudes_path_fails(draft, request):
    """Starts a server of Codex or Pi without its key."""
    try:
        return resolve_rule(draft, request)
    except MissingVariableError:
        if request.runtime == "claude":
            raise
        return draft


@variant("harness.reference.prepare.pipeline:require_variables", catches=("secrets-only-attached-servers",))
def the_whole_catalog_is_checked(draft, request):
    """Fails a session for an entry that it does not carry."""
    require_rule(replace(draft, owned=request.catalog.names), request)


@variant("harness.reference.readiness.probe:required_variables", catches=("secrets-probe-prepare-agree",))
def readiness_has_an_extractor_of_its_own(entry, instance):
    """Forgets args and url."""
    return placeholders.variables({"env": entry.env, "headers": entry.headers}).required


@variant(
    "harness.reference.prepare.failures:unresolved_variables",
    catches=("secrets-failure-recorded", "prepare-unresolved-fails-loudly"),
)
def any_braced_text_is_a_variable(stderr):
    """Reads names from any line."""
    return tuple(failures.LISTED_NAME.findall(stderr)) if "Unresolved" in stderr else ()


@variant("harness.reference.prepare.failures:classify_error", catches=("secrets-store-outage-at-spawn",))
def an_outage_is_a_missing_variable(error):
    """Reports the name as unset."""
    if isinstance(error, StoreUnavailableError):
        return failures.Failure("air_secret_unresolvable", ("T",))
    return classify_error_rule(error)


@variant("harness.reference.prepare.failures:attempts", catches=("prepare-transient-retries",))
def everything_is_tried_four_times(failure):
    """Retries what cannot change."""
    return 4


@variant("harness.reference.prepare.failures:classify_stderr", catches=("prepare-root-not-found-refresh",))
def an_unknown_root_is_any_failure(stderr):
    """Never refreshes the catalog."""
    return classify_stderr_rule(stderr)._replace(refreshes_catalog=False)


@variant("harness.reference.prepare.forwarding:known_values", catches=("prepare-codex-forwarding-inlined",))
def forwarding_is_relied_on(names, lookup):
    """Leaves the names to be inherited, which Codex does not do."""
    return {}


@variant("harness.reference.npx.isolation:pinned", catches=("npx-pin-not-on-agent-codex",))
def the_cache_is_forwarded_by_name(entry, cache):
    """Reads an unset variable on Codex."""
    return {**entry, "env_vars": [*entry.get("env_vars", []), "NPM_CONFIG_CACHE"]}


@variant("harness.reference.prepare.seeding:without_blanks", catches=("secrets-blank-result-dropped",))
def blank_keys_stay(entry, declared):
    """Keeps the empty text that AIR resolved a default to."""
    return dict(entry)


@variant("harness.reference.prepare.pipeline:finished", catches=("secrets-value-confined",))
def the_resolved_entry_is_logged(draft, document, request, steps):
    """Puts the entries into the log, to be helpful."""
    done = finished_rule(draft, document, request, steps)
    return replace(done, warnings=(*done.warnings, f"prepared {dict(done.servers)}"))


@variant("harness.reference.prepare.pipeline:require_variables", catches=("secrets-value-confined",))
def a_failing_entry_is_told_with_its_values(draft, request):
    """Puts the entry, as far as it resolved, into the error of a failed preparation."""
    try:
        require_rule(draft, request)
    except MissingVariableError as missing:
        entries = repr([dict(request.catalog.require(name).raw) for name in draft.owned])
        shown = placeholders.PLACEHOLDER.sub(value_or_text(request), entries)
        raise failures.UnresolvedVariablesError(
            (missing.name,), f"Error: Unresolved variable in {request.clone}: ${{{missing.name}}}. Entries: {shown}"
        ) from missing


def value_or_text(request: request.PrepareRequest) -> Callable[[re.Match[str]], str]:
    """What a placeholder stands for, or itself."""
    return lambda match: request.lookup(match[1]) or match[0]


# --- spawn


@variant(
    "harness.reference.prepare.spawn:codex_spawn",
    catches=("prepare-spawn-codex-no-mcp-env", "npx-pin-not-on-agent-codex"),
)
def codex_gets_claudes_variables(parent, dotenv, home):
    """Expects servers to inherit what Codex does not pass on."""
    spawned = codex_spawn_rule(parent, dotenv, home)
    return spawned._replace(
        variables={**spawned.variables, "MCP_TIMEOUT": "180000", "NPM_CONFIG_CACHE": "/clones/example/.npm-cache"}
    )


@variant("harness.reference.prepare.spawn:is_zimmer_secret", catches=("prepare-spawn-clears-zimmer-secrets",))
def agents_inherit_everything(name):
    """Lets an agent reach the operator's realm."""
    return False
