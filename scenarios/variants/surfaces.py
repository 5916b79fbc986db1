"""Known-bad variants of what the surfaces show."""

from __future__ import annotations

from harness.reference.catalog.schema import snapshot_text
from harness.reference.readiness.contained import contained
from harness.reference.surfaces.options import Picker
from harness.reference.surfaces.options import options as options_rule
from harness.reference.surfaces.options import server_list as server_list_rule
from harness.reference.surfaces.roster import item
from harness.reference.surfaces.roster import roster_line as roster_line_rule
from harness.reference.surfaces.warnings import WILL_FAIL, WILL_LACK_TOOLS, WILL_PARK
from harness.requirements.variants import variant

SURFACES = "harness.reference.surfaces"


@variant(
    f"{SURFACES}.roster:roster_line",
    catches=("unavailable-same-text-everywhere", "unavailable-shown-in-roster", "offer-get-configs-roster"),
)
def the_roster_words_it_differently(status):
    """Shows a reason of its own."""
    return f"- `{status.name}` — unavailable: {str(status.reason_markdown).upper()}"


@variant(f"{SURFACES}.roster:roster_line", catches=("offer-roster-not-a-catalog",))
def the_roster_repeats_the_item(status):
    """Gives a server that cannot start a full block."""
    return "\n".join([*item(status.name, status.title, "Staging secrets, read-write."), roster_line_rule(status)])


@variant(
    f"{SURFACES}.roster:is_blocked",
    catches=("offer-get-configs-usable-only", "offer-get-configs-header", "offer-roster-exists-message"),
)
def blocked_servers_are_listed(status):
    """Lists everything."""
    return False


@variant(f"{SURFACES}.roster:root_defaults", catches=("offer-root-default-marked",))
def root_defaults_are_unmarked(defaults, statuses):
    """Leaves a server that cannot start unmarked, so it is copied verbatim."""
    return ", ".join(f"`{name}`" for name in defaults)


@variant(f"{SURFACES}.roster:header", catches=("offer-get-configs-empty-forms",))
def no_servers_are_said_to_exist(usable, blocked):
    """Says that nothing is there when all are blocked."""
    return f"Found {usable} usable servers:" if usable else "*No MCP servers available.*"


@variant(f"{SURFACES}.connectors:offers_authorize", catches=("unavailable-shown-on-connectors",))
def everything_blocked_has_a_button(status):
    """Offers Authorize because no credential is stored."""
    return not status.available


@variant(f"{SURFACES}.connectors:attention", catches=("connectors-attention-count",))
def nothing_needs_attention(states):
    """Counts problems as healthy."""
    return 0


@variant(
    f"{SURFACES}.connectors:unclaimed",
    catches=(
        "credential-key-catalog-edit-invalidates",
        "connectors-unclaimed-not-counted",
        "connectors-other-key-not-matched",
    ),
)
def stale_credentials_count_by_name(catalog, stored_keys):
    """Takes a credential of a catalog server's name for claimed."""
    return tuple(key for key in stored_keys if key.partition("|")[0] not in catalog.names)


@variant(f"{SURFACES}.options:options", catches=("startup-timeout-rest-reports-accepted",))
def refused_budgets_are_echoed(catalog, statuses):
    """Shows the catalog's own value, so that a refused number looks effective."""
    return tuple(
        option._replace(startup_timeout_sec=catalog.require(option.name).raw.get("startup_timeout_sec"))
        for option in options_rule(catalog, statuses)
    )


@variant(
    f"{SURFACES}.options:server_list",
    catches=("startup-timeout-rest-reports-accepted", "offer-rest-shape"),
)
def an_absent_budget_has_no_key(offered):
    """Leaves the key out where there is nothing to report."""
    return [
        {key: value for key, value in server.items() if key != "startup_timeout_sec" or value is not None}
        for server in server_list_rule(offered)
    ]


@variant(
    f"{SURFACES}.options:configs_answer",
    catches=("startup-timeout-rest-both-equal", "offer-rest-configs-sections", "catalog-entry-order-kept"),
)
def the_two_lists_differ(offered, *, agent_roots=(), runtime_models=(), goals=()):
    """Builds one of the REST lists apart from the other."""
    servers = sorted(server_list_rule(offered), key=lambda server: server["name"])
    return {"mcp_servers": [{**server, "startup_timeout_sec": None} for server in servers], "agent_roots": []}


@variant(
    f"{SURFACES}.options:unavailable_reason",
    catches=("offer-rest-reason", "offer-rest-unavailable-bool", "offer-rest-all-listed"),
)
def the_rest_reason_is_markdown(status):
    """Hands the agent's form to a human."""
    return "" if status is None else status.reason_markdown


@variant(
    f"{SURFACES}.options:picker",
    catches=("offer-picker-sorted-last", "offer-picker-keeps-all", "offer-picker-badge"),
)
def the_picker_filters(servers):
    """Drops what cannot start."""
    usable = tuple(name for name, unavailable in servers if not unavailable)
    return Picker(usable, ())


@variant(f"{SURFACES}.options:computed_statuses", catches=("offer-options-fallback",))
def a_failed_computation_blocks_everything(compute):
    """Takes every server for unavailable when readiness cannot run."""
    from harness.reference.readiness.probe import Status
    from harness.reference.readiness.states import State

    names = ("context7", "zimmer-self-session", "strad-secrets-staging-rw", "strad-secrets-oauth")
    blocked = tuple(Status(name, name, State.DECLARED_UNAVAILABLE, declared="?") for name in names)
    return contained(compute).answer or blocked


@variant(f"{SURFACES}.static_files:static_files", catches=("catalog-snapshot-served",))
def the_schema_lies_elsewhere():
    """Serves the copy under its old path only."""
    return {"/docs/mcp.schema.json": snapshot_text()}


@variant(
    f"{SURFACES}.warnings:consequence",
    catches=("warnings-branch-on-worst", "warnings-missing-text", "warnings-declared-text"),
)
def one_text_for_all_states(states):
    """Names one consequence whatever is wrong."""
    return WILL_PARK


@variant(f"{SURFACES}.warnings:consequence", catches=("warnings-oauth-text",))
def a_park_is_told_as_a_failure(states):
    """Says that the session will fail."""
    return WILL_FAIL if set(states) - {"declared_unavailable"} else WILL_LACK_TOOLS


@variant(f"{SURFACES}.warnings:consequence", catches=("warnings-points-at-connectors",))
def no_pointer(states):
    """Says what happens and not where to help."""
    return "The session was created anyway."


@variant(
    f"{SURFACES}.warnings:mention",
    catches=("warnings-sentence-head", "warnings-says-which-and-why"),
)
def the_reason_keeps_its_full_stop(name, reason):
    """Puts a full stop inside the brackets."""
    return name if reason is None else f"{name} ({reason})"


@variant(f"{SURFACES}.warnings:creation_warning", catches=("warnings-readiness-raises-silent",))
def a_failed_computation_is_told(compute):
    """Puts the resolver's error before the caller."""
    return contained(compute).error


@variant(
    "harness.reference.readiness.probe:required_variables",
    catches=("catalog-sixteen-readiness-no-secrets",),
)
def unresolved_secrets_count_as_usable(entry, instance):
    """Requires no variable."""
    return ()
