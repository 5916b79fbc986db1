"""Old or plausible bugs of the fake runtimes: a fake that is kinder or harsher than the program hides its faults."""

from __future__ import annotations

from fake_runtimes.budgets import TIMED_OUT, Attempt
from fake_runtimes.claude.config import CONFIG_PATH
from fake_runtimes.claude.config import read_config as claude_read_config
from fake_runtimes.claude.startup import attempt_seconds as claude_attempt_seconds
from fake_runtimes.codex.startup import attempt_seconds as codex_attempt_seconds
from fake_runtimes.codex.startup import first_request_wait_seconds as codex_first_request_wait_seconds
from fake_runtimes.codex.trust import Trust
from fake_runtimes.pi.resolver import CACHE_VARIABLE
from fake_runtimes.pi.resolver import process_cache as pi_process_cache
from fake_runtimes.pi.startup import request_seconds as pi_request_seconds
from harness.requirements.variants import variant


@variant("fake_runtimes.budgets:request", catches=("startup-timeout-default-hang-held",))
def a_hang_fails_at_once(answers_after_seconds, budget_seconds):
    """Reports the failure of a silent server without waiting for its budget."""
    if answers_after_seconds is None or answers_after_seconds >= budget_seconds:
        return Attempt(TIMED_OUT, 0.0)
    return Attempt("connected", answers_after_seconds)


@variant("fake_runtimes.budgets:request", catches=("startup-timeout-default-hang-held",))
def a_budget_is_cut_to_a_minute(answers_after_seconds, budget_seconds):
    """Gives up after 60 seconds whatever the budget says."""
    budget = min(budget_seconds, 60.0)
    if answers_after_seconds is None or answers_after_seconds >= budget:
        return Attempt(TIMED_OUT, budget)
    return Attempt("connected", answers_after_seconds)


@variant("fake_runtimes.budgets:request", catches=("prepare-nine-cold-npx-within-budget",))
def installs_queue_behind_each_other(answers_after_seconds, budget_seconds):
    """Lets each server wait for eight others that install into the same cache."""
    ready = None if answers_after_seconds is None else answers_after_seconds * 9
    return (
        Attempt(TIMED_OUT, budget_seconds) if ready is None or ready >= budget_seconds else Attempt("connected", ready)
    )


@variant("fake_runtimes.codex.startup:attempt_seconds", catches=("startup-timeout-codex-fast-beside-slow",))
def the_longest_budget_serves_all(server, profile):
    """Gives every table the budget of the slowest server."""
    return max(codex_attempt_seconds(server, profile), 300.0)


@variant(
    "fake_runtimes.codex.startup:attempt_seconds",
    catches=("prepare-fake-codex-own-default", "npx-cold-clone-fits-budget"),
)
def the_codex_key_is_ignored(server, profile):
    """Gives every server the default of 30 seconds."""
    return profile.default_startup_timeout_sec


@variant("fake_runtimes.codex.startup:attempt_seconds", catches=("prepare-fake-codex-own-default",))
def codex_has_the_default_of_pi(server, profile):
    """Gives a server without the key a minute."""
    declared = {"startup_timeout_sec", "startup_timeout_ms"} & server.raw.keys()
    return codex_attempt_seconds(server, profile) if declared else 60.0


@variant("fake_runtimes.codex.startup:starts_at_launch", catches=("prepare-hang-costs-whole-budget",))
def a_hang_is_remembered(server, memory):
    """Skips a server that hung in an earlier run."""
    return server.starts and server.name not in memory.hung


@variant("fake_runtimes.codex.child:child_environment", catches=("prepare-codex-child-env-whitelist",))
def the_child_inherits_everything(server, environment, profile):
    """Hands down the whole environment, so that a missing entry goes unnoticed."""
    return {**environment, **server.env}


@variant("fake_runtimes.codex.child:child_environment", catches=("prepare-codex-child-env-whitelist",))
def the_env_vars_are_not_looked_up(server, environment, profile):
    """Forgets the names that the entry asks to inherit."""
    return {**{name: environment[name] for name in profile.child_environment if name in environment}, **server.env}


@variant("fake_runtimes.codex.config:counts", catches=("prepare-codex-trust",))
def the_project_file_is_always_read(*, trusted):
    """Reads a checked-in configuration without anybody's consent."""
    return True


@variant("fake_runtimes.codex.trust:judge", catches=("prepare-codex-trust",))
def every_project_is_trusted(profile, *, command="exec", record=None, sandbox=None, flag=False):
    """Takes each directory for a trusted one."""
    return Trust(used=True)


@variant("fake_runtimes.codex.startup:first_request_wait_seconds", catches=("prepare-codex-grace-zero",))
def the_grace_key_is_never_read(server, profile):
    """Waits the version's own grace whatever the file says."""
    return codex_first_request_wait_seconds(server._replace(settings={}), profile)


@variant("fake_runtimes.codex.startup:first_request_wait_seconds", catches=("prepare-codex-grace-zero",))
def the_grace_key_is_known_to_every_version(server, profile):
    """Lets the older version read a key that it does not have."""
    return codex_first_request_wait_seconds(server, profile._replace(grace_key=True))


@variant("fake_runtimes.claude.config:server_files", catches=("prepare-claude-never-settings-json",))
def settings_files_hold_servers(files):
    """Registers the servers of a settings.json."""
    return tuple(path for path in files if path == CONFIG_PATH or path.startswith(".claude/settings"))


@variant("fake_runtimes.claude.startup:attempt_seconds", catches=("startup-timeout-claude-key-not-written",))
def the_entry_s_key_is_believed(server, environment, profile):
    """Takes the budget from a key of the entry that the program ignores."""
    declared = server.raw.get("startupTimeoutSec")
    return float(declared) if declared else claude_attempt_seconds(server, environment, profile)


@variant("fake_runtimes.claude.config:read_config", catches=("prepare-empty-servers-key",))
def a_missing_servers_key_is_an_empty_one(text, environment, profile):
    """Takes an object without `mcpServers` for an empty table."""
    empty = text is not None and text.strip() == "{}"
    return claude_read_config('{"mcpServers": {}}' if empty else text, environment, profile)


@variant("fake_runtimes.pi.startup:request_seconds", catches=("prepare-fake-pi-own-default",))
def pi_gives_up_after_a_minute(server, profile):
    """Cuts every budget to 60 seconds."""
    return min(pi_request_seconds(server, profile), 60.0)


@variant("fake_runtimes.pi.startup:request_seconds", catches=("npx-cold-clone-fits-budget",))
def the_pi_key_is_ignored(server, profile):
    """Gives every server the default of 60 seconds."""
    return profile.default_request_timeout_ms / 1000


@variant(
    "fake_runtimes.pi.startup:call_seconds",
    catches=("startup-timeout-pi-covers-tool-calls", "prepare-pi-budget-covers-calls"),
)
def the_budget_is_for_connecting_alone(server, profile):
    """Leaves tool calls at the default, so that nobody sees why a short budget is harmful."""
    return profile.default_request_timeout_ms / 1000


@variant("fake_runtimes.pi.resolver:intercepted", catches=("npx-pi-resolver-intercepts",))
def npx_is_always_spawned(command, args):
    """Knows no resolver."""
    return


@variant("fake_runtimes.pi.resolver:process_cache", catches=("npx-pi-resolver-process-cache",))
def the_entry_s_cache_is_read(server, environment, npm_default):
    """Looks for packages where the entry says that the child keeps them."""
    return server.env.get(CACHE_VARIABLE) or pi_process_cache(server, environment, npm_default)


@variant("fake_runtimes.pi.startup:child_environment", catches=("npx-pi-fallback-uses-pin",))
def the_child_has_the_process_environment_alone(server, environment, profile):
    """Forgets the entry's env, so that the fallback installs into the user's cache."""
    return dict(environment)


@variant("fake_runtimes.pi.resolver:resolver_limit_seconds", catches=("npx-pi-resolver-30s-cap",))
def the_request_budget_limits_the_resolver(server, profile):
    """Gives `npm exec` the budget of the server."""
    return pi_request_seconds(server, profile)


@variant("fake_runtimes.pi.resolver:connect", catches=("npx-pi-budget-covers-fallback",))
def the_budget_includes_the_resolver(server, profile, planned, answers_after_seconds):
    """Counts the resolver's time against the budget of the server."""
    budget = pi_request_seconds(server, profile)
    ready = None if answers_after_seconds is None else planned.starts_after_seconds + answers_after_seconds
    if ready is None or ready >= budget:
        return Attempt(TIMED_OUT, budget)
    return Attempt("connected", ready)


@variant("fake_runtimes.pi.resolver:connect", catches=("npx-pi-budget-covers-fallback",))
def a_wall_of_180_seconds_limits_the_start(server, profile, planned, answers_after_seconds):
    """Limits resolver and server together to 180 seconds, and gives the server all of them."""
    ready = None if answers_after_seconds is None else planned.starts_after_seconds + answers_after_seconds
    if ready is None or ready >= 180.0:
        return Attempt(TIMED_OUT, 180.0)
    return Attempt("connected", ready)
