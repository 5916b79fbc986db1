"""Old and plausible bugs of the startup budget."""

from __future__ import annotations

import json
from dataclasses import replace

from harness.reference.catalog.catalog import budget_warnings as budget_warnings_rule
from harness.reference.catalog.catalog import is_server as is_server_rule
from harness.reference.catalog.entry import read_entry as read_entry_rule
from harness.reference.catalog.startup_timeout import Accepted
from harness.reference.catalog.startup_timeout import accept as accept_rule
from harness.reference.catalog.startup_timeout import milliseconds as milliseconds_rule
from harness.reference.prepare.budgets import claude_mcp_timeout as claude_mcp_timeout_rule
from harness.reference.prepare.budgets import codex_seconds as codex_seconds_rule
from harness.reference.prepare.budgets import codex_table as codex_table_rule
from harness.reference.prepare.budgets import server_names as server_names_rule
from harness.reference.prepare.pipeline import with_budget as with_budget_rule
from harness.requirements.variants import variant

ACCEPT = "harness.reference.catalog.startup_timeout:accept"
IS_INTEGER = "harness.reference.catalog.startup_timeout:is_json_integer"
MILLISECONDS = "harness.reference.catalog.startup_timeout:milliseconds"
WARNINGS = "harness.reference.catalog.catalog:budget_warnings"
IS_SERVER = "harness.reference.catalog.catalog:is_server"
READ_ENTRY = "harness.reference.catalog.entry:read_entry"
BUDGETS = "harness.reference.prepare.budgets:"


@variant(BUDGETS + "codex_seconds", catches=("startup-timeout-default-180",))
def codex_has_a_literal_of_its_own(accepted_seconds, *, starts_command):
    """The default is written a second time and drifts from the first."""
    if accepted_seconds is not None:
        return accepted_seconds
    return 180 if starts_command else None


@variant(BUDGETS + "pi_seconds", catches=("startup-timeout-default-180",))
def pi_is_left_to_its_own_default(accepted_seconds, *, starts_command):
    """Nothing is written without a declaration: Pi gives up after 60 seconds."""
    return accepted_seconds if accepted_seconds is not None and accepted_seconds > 180 else None


@variant(ACCEPT, catches=("startup-timeout-integer-5-600",))
def bounds_are_exclusive(value):
    """Takes only what lies strictly between the bounds."""
    return Accepted(None, "out_of_range") if value in (5, 600) else accept_rule(value)


@variant(ACCEPT, catches=("startup-timeout-integer-5-600", "startup-timeout-bounds-are-borrowed"))
def bounds_are_wider(value):
    """Takes from one second to an hour."""
    accepted = accept_rule(value)
    fits = accepted.refused == "out_of_range" and isinstance(value, int) and 1 <= value <= 3600
    return Accepted(value, None) if fits else accepted


@variant(IS_INTEGER, catches=("startup-timeout-nonintegers-refused",))
def a_boolean_is_an_integer(value):
    """What Python says of True."""
    return isinstance(value, int)


@variant(IS_INTEGER, catches=("startup-timeout-nonintegers-refused",))
def a_whole_fraction_is_an_integer(value):
    """60.0 counts, since nothing is behind the point."""
    whole = isinstance(value, float) and value.is_integer()
    return not isinstance(value, bool) and (isinstance(value, int) or whole)


@variant(ACCEPT, catches=("startup-timeout-nonintegers-refused",))
def texts_are_coerced(value):
    """ "60" counts as 60."""
    return accept_rule(int(value) if isinstance(value, str) and value.isdecimal() else value)


@variant(ACCEPT, catches=("startup-timeout-null-is-silent",))
def null_is_refused(value):
    """Every entry without the field is warned about."""
    return Accepted(None, "not_an_integer") if value is None else accept_rule(value)


@variant(WARNINGS, catches=("startup-timeout-null-is-silent",))
def silence_is_warned_about(entries):
    """A line for each entry that declares nothing."""
    silent = tuple(f"{name} has no budget" for name, entry in entries.items() if entry.startup_timeout_sec is None)
    return silent or budget_warnings_rule(entries)


@variant(WARNINGS, catches=("startup-timeout-refusal-warns",))
def refusals_are_dropped_silently(entries):
    """Nobody learns why a number has no effect."""
    return ()


@variant(ACCEPT, catches=("startup-timeout-refusal-falls-to-default",))
def refused_values_are_clamped(value):
    """2 becomes 5, 900 becomes 600."""
    accepted = accept_rule(value)
    if accepted.refused == "out_of_range" and isinstance(value, int):
        return Accepted(min(max(value, 5), 600), None)
    return accepted


@variant(IS_SERVER, catches=("startup-timeout-refusal-not-fatal",))
def a_refused_budget_costs_the_entry(name, raw):
    """The entry is left out as if it were broken."""
    return is_server_rule(name, raw) and accept_rule(raw.get("startup_timeout_sec")).refused is None


@variant(READ_ENTRY, catches=("startup-timeout-refusal-not-fatal", "startup-timeout-readiness-independent"))
def an_odd_budget_makes_the_server_unavailable(name, raw):
    """Readiness looks at the budget."""
    entry = read_entry_rule(name, raw)
    accepted = accept_rule(raw.get("startup_timeout_sec"))
    odd = accepted.refused is not None or (accepted.seconds or 60) < 10
    return replace(entry, unavailable=entry.unavailable or "Its budget is odd.") if odd else entry


@variant("harness.reference.catalog.readers:untold", catches=("startup-timeout-warn-once-per-load",))
def warned_about_on_every_page_view(warnings, told):
    """Fills the log with one line for each reader of the list."""
    return warnings


@variant("harness.reference.catalog.readers:untold", catches=("startup-timeout-warn-once-per-load",))
def warned_about_once_in_the_life_of_a_server(warnings, told):
    """Says nothing about the next wrong value of the same catalog."""
    return () if told else warnings


@variant(
    BUDGETS + "process_seconds", catches=("startup-timeout-longer-reaches-all", "startup-timeout-claude-process-max")
)
def claude_ignores_declarations(accepted_seconds):
    """The variable is always the default."""
    return 180


@variant(BUDGETS + "process_seconds", catches=("startup-timeout-claude-process-max",))
def the_last_server_wins(accepted_seconds):
    """The order of the file decides."""
    return max([180, *list(accepted_seconds)[-1:]])


@variant(
    BUDGETS + "process_seconds", catches=("startup-timeout-claude-process-max", "startup-timeout-shorter-codex-only")
)
def the_smallest_wins(accepted_seconds):
    """One fast server starves all others."""
    return min([*accepted_seconds, 600], default=180) if accepted_seconds else 180


@variant(BUDGETS + "process_seconds", catches=("startup-timeout-claude-no-server-starved",))
def the_average_is_taken(accepted_seconds):
    """The slowest server gets less than it asked for."""
    asked = [180, *accepted_seconds]
    return sum(asked) // len(asked)


@variant(BUDGETS + "pi_seconds", catches=("startup-timeout-shorter-codex-only", "startup-timeout-pi-lengthens-only"))
def pi_gets_any_declared_budget(accepted_seconds, *, starts_command):
    """A short one cuts that server's tool calls."""
    return codex_seconds_rule(accepted_seconds, starts_command=starts_command)


@variant(BUDGETS + "codex_seconds", catches=("startup-timeout-codex-startup-scoped",))
def codex_gets_one_number_for_all(accepted_seconds, *, starts_command):
    """A fast server cannot fail fast beside a slow one."""
    return 600 if accepted_seconds is not None else codex_seconds_rule(None, starts_command=starts_command)


@variant(BUDGETS + "codex_table", catches=("startup-timeout-codex-startup-scoped",))
def the_tool_budget_is_set_along(entry, declared_raw):
    """A short start cuts the tool calls as well."""
    table = codex_table_rule(entry, declared_raw)
    if isinstance(table, dict) and "startup_timeout_sec" in table:
        return {**table, "tool_timeout_sec": table["startup_timeout_sec"]}
    return table


@variant(BUDGETS + "claude_mcp_timeout", catches=("startup-timeout-claude-session-servers",))
def the_whole_catalog_counts(mcp_json_text, catalog):
    """A slow server that nobody chose raises the budget of all."""
    everything = json.dumps({"mcpServers": dict.fromkeys(catalog.names)})
    return claude_mcp_timeout_rule(everything, catalog)


@variant("harness.reference.prepare.pipeline:with_budget", catches=("startup-timeout-claude-key-not-written",))
def claude_entries_get_a_key(name, entry, request):
    """Writes a key that Claude ignores, and believes in it."""
    if request.runtime == "claude" and isinstance(entry, dict):
        return {**entry, "startupTimeoutSec": 20}
    return with_budget_rule(name, entry, request)


@variant(BUDGETS + "starts_command", catches=("startup-timeout-stdio-default-only",))
def remote_entries_get_the_default_too(entry):
    """An unreachable URL is reported after three minutes."""
    return True


@variant(
    BUDGETS + "has_local_budget", catches=("startup-timeout-local-value-wins", "startup-timeout-earlier-prepare-wins")
)
def the_catalog_overwrites_the_file(entry, keys):
    """Every preparation writes the catalog's number."""
    return False


@variant(BUDGETS + "has_local_budget", catches=("startup-timeout-local-value-wins",))
def zero_is_no_local_budget(entry, keys):
    """Looks at the value where the key is meant."""
    return any(entry.get(key) for key in keys)


FIRST_TABLES: dict[str, object] = {}


@variant(BUDGETS + "codex_table", catches=("startup-timeout-regenerated-picks-new",))
def the_first_budget_is_kept_outside_the_file(entry, declared_raw):
    """A deleted config comes back with the old number."""
    return FIRST_TABLES.setdefault(json.dumps(entry), codex_table_rule(entry, declared_raw))


FIRST_TIMEOUTS: dict[str | None, str] = {}


@variant(
    BUDGETS + "claude_mcp_timeout",
    catches=("startup-timeout-claude-current-catalog", "prepare-own-earlier-value-sticks"),
)
def claudes_number_is_frozen(mcp_json_text, catalog):
    """The first spawn of a clone decides for all later ones."""
    return FIRST_TIMEOUTS.setdefault(mcp_json_text, claude_mcp_timeout_rule(mcp_json_text, catalog))


@variant(BUDGETS + "server_names", catches=("startup-timeout-claude-unreadable-config",))
def an_unreadable_config_fails_the_spawn(mcp_json_text):
    """Lets the parser's error through."""
    if mcp_json_text is not None:
        json.loads(mcp_json_text)
    return server_names_rule(mcp_json_text)


@variant(MILLISECONDS, catches=("startup-timeout-seconds-to-ms-exact",))
def milliseconds_are_a_fraction(seconds):
    """181000.0 is written, which Claude reads in its own way."""
    return float(milliseconds_rule(seconds))


@variant(MILLISECONDS, catches=("startup-timeout-seconds-to-ms-exact",))
def milliseconds_carry_a_unit(seconds):
    """Claude reads `181s` as 181 ms."""
    return f"{seconds}s"
