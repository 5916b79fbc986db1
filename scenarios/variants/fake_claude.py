"""Old or plausible bugs of the fake Claude's session: a kinder fake would prove nothing about the real program."""

from __future__ import annotations

from fake_runtimes.claude.bearer import has_static_authorization
from fake_runtimes.claude.calling import call as call_rule
from fake_runtimes.claude.connecting import connect as connect_rule
from fake_runtimes.claude.logs import log_directory
from fake_runtimes.claude.needs_auth import entries
from fake_runtimes.claude.needs_auth import is_live as is_live_rule
from fake_runtimes.claude.needs_auth import updated as updated_rule
from fake_runtimes.claude.sources import SETTINGS, USER, json_object, members, read_text, sourced
from fake_runtimes.claude.sources import read_sources as read_sources_rule
from fake_runtimes.claude.startup import attempt_seconds as attempt_seconds_rule
from fake_runtimes.claude.wording import NEEDS_AUTH
from harness.requirements.variants import variant

MEMO = "gate-fake-needs-auth-memo"
SKIPS = "store-needs-auth-skips-network"


@variant("fake_runtimes.claude.needs_auth:is_live", catches=(MEMO, SKIPS))
def the_memory_of_refusals_is_not_honoured(text, name, now_ms):
    """Always goes to the network, so that clearing the memory proves nothing."""
    return False


@variant("fake_runtimes.claude.needs_auth:is_live", catches=(MEMO,))
def an_entrys_own_time_to_live_is_ignored(text, name, now_ms):
    """Gives every entry fifteen minutes."""
    held = entries(text)
    entry = held.get(name) if isinstance(held, dict) else None
    return isinstance(entry, dict) and 0 <= now_ms - entry["timestamp"] < 900_000


@variant("fake_runtimes.claude.needs_auth:is_live", catches=(MEMO,))
def a_refusal_is_remembered_for_ever(text, name, now_ms):
    """Honours an entry of any age."""
    return name in entries(text)


@variant("fake_runtimes.claude.needs_auth:updated", catches=(MEMO,))
def a_connection_strikes_nobody_off(text, changes):
    """Keeps the entry of a server that has connected."""
    return updated_rule(text, {name: stamp for name, stamp in changes.items() if stamp is not None})


@variant("fake_runtimes.claude.needs_auth:updated", catches=(MEMO,))
def a_refusal_is_not_written_down(text, changes):
    """Forgets refusals at the end of the session."""
    return updated_rule(text, {name: stamp for name, stamp in changes.items() if stamp is None})


@variant("fake_runtimes.claude.connecting:connect", catches=(MEMO,))
async def the_memory_keeps_from_processes_too(session, state):
    """Skips a process whose name is remembered."""
    if is_live_rule(session.needs_auth_text, state.server.name, session.world.clock.now() * 1000):
        state.status = NEEDS_AUTH
        return
    await connect_rule(session, state)


@variant("fake_runtimes.claude.connecting:is_remembered", catches=(MEMO, SKIPS))
def a_configured_header_gets_past_the_memory(session, name):
    """Tries a server whose entry has an Authorization of its own."""
    static = has_static_authorization(session.servers[name].server)
    return not static and is_live_rule(session.needs_auth_text, name, session.world.clock.now() * 1000)


@variant("fake_runtimes.claude.access:stored_entry", catches=("writers-claude-fake-reads-by-key",))
def a_token_is_found_by_its_url(store_text, server):
    """Compares the entries' own serverUrl."""
    held = json_object(store_text).get("mcpOAuth", {}).values()
    return next((entry for entry in held if entry.get("serverUrl") == server.url and entry["accessToken"]), None)


@variant("fake_runtimes.claude.calling:call", catches=("reconnect-no-live-handover",))
async def a_call_connects_a_server_that_wanted_a_sign_in(session, wanted):
    """Connects again where the program only says that it may."""
    state = session.servers.get(wanted.server)
    if state is not None and state.status == NEEDS_AUTH:
        session.needs_auth_text = None
        await connect_rule(session, state)
    return await call_rule(session, wanted)


@variant(
    "fake_runtimes.claude.startup:attempt_seconds",
    catches=(
        "startup-timeout-default-hang-held",
        "prepare-hang-costs-whole-budget",
        "prepare-claude-timeout-env",
    ),
)
def the_budget_of_a_process_is_a_minute_at_most(server, environment, profile):
    """Gives up after 60 seconds whatever the environment says."""
    return min(attempt_seconds_rule(server, environment, profile), 60.0)


@variant(
    "fake_runtimes.claude.startup:attempt_seconds",
    catches=(
        "prepare-claude-timeout-env",
        "prepare-claude-no-entry-timeout-key",
        "startup-timeout-claude-key-not-written",
    ),
)
def the_entry_gives_the_budget(server, environment, profile):
    """Believes the entry's own key, or its own environment."""
    declared = server.raw.get("startupTimeoutSec")
    return float(declared) if declared else attempt_seconds_rule(server, environment, profile)


@variant("fake_runtimes.claude.startup:first_request_wait_seconds", catches=("prepare-hang-costs-whole-budget",))
def the_first_request_never_waits_longer_than_two_seconds(environment, profile):
    """Knows no waiting mode, so that a hang costs nothing."""
    return profile.first_request_wait_ms / 1000


@variant("fake_runtimes.claude.session:work", catches=("prepare-hang-costs-whole-budget",))
async def a_server_with_a_log_of_an_earlier_run_is_left_out(session, queue):
    """Remembers that a server hung in an earlier run."""
    for state in queue:
        path = log_directory(session.homes.cache, session.directory, state.server.name)
        if await session.world.files.stat(path) is None:
            await connect_rule(session, state)


@variant("fake_runtimes.claude.sources:read_sources", catches=("prepare-claude-never-settings-json",))
async def servers_of_the_settings_are_started(world, homes, profile):
    """Takes `mcpServers` of a settings.json for servers."""
    sources = await read_sources_rule(world, homes, profile)
    settings = json_object(await read_text(world, f"{homes.config}/{SETTINGS}"))
    more = sourced(members(settings, sources.environment, profile, []), USER)
    return sources._replace(servers={**more, **sources.servers})


@variant("fake_runtimes.claude.stored:wants_renewal", catches=("reconcile-runtimes-do-refresh",))
def a_lapsed_token_is_never_renewed(entry, now_seconds):
    """Only reads tokens, so that every scenario of a write-back passes without a reconciler."""
    return False
