"""Known-bad variants of the writers of credentials: old bugs, and plausible ones."""

from __future__ import annotations

from dataclasses import replace

from harness.reference.credentials import table
from harness.reference.credentials.cron import renew as renew_rule
from harness.reference.credentials.key import credential_key, pi_account
from harness.reference.credentials.writers import claude, pi, pi_store, staging, store_file
from harness.reference.credentials.writers.claude import entry_of as claude_entry_rule
from harness.reference.credentials.writers.claude import merged as claude_merged_rule
from harness.reference.credentials.writers.claude import pair_of as claude_pair_rule
from harness.reference.credentials.writers.claude import without as claude_without_rule
from harness.reference.credentials.writers.codex import entry_of as codex_entry_rule
from harness.reference.credentials.writers.codex import format_pin as format_pin_rule
from harness.reference.credentials.writers.codex import keychain_item as keychain_item_rule
from harness.reference.credentials.writers.codex import rewritten as codex_rewritten_rule
from harness.reference.credentials.writers.pi import entry_of as pi_entry_rule
from harness.reference.credentials.writers.pi_store import accounts_to_remove as accounts_rule
from harness.reference.credentials.writers.pi_store import pair_of as pi_pair_rule
from harness.reference.credentials.writers.protocol import StagedCredential
from harness.reference.credentials.writers.registry import registered_writers as registered_rule
from harness.reference.credentials.writers.staging import stage as stage_rule
from harness.reference.credentials.writers.store_file import document_of
from harness.reference.session.injection import hand_over as hand_over_rule
from harness.requirements.variants import variant

CLAUDE = "harness.reference.credentials.writers.claude"
CODEX = "harness.reference.credentials.writers.codex"
PI = "harness.reference.credentials.writers.pi"
PI_STORE = "harness.reference.credentials.writers.pi_store"
REGISTRY = "harness.reference.credentials.writers.registry"
STAGING = "harness.reference.credentials.writers.staging"
STORE_FILE = "harness.reference.credentials.writers.store_file"
KEYCHAIN = "harness.reference.credentials.writers.keychain"


# --- all of them


@variant("harness.reference.credentials.writers.pi:is_fresher", catches=("refresh-chain-never-burned",))
def whatever_was_handed_in_is_replaced(text, credential):
    """Stages without a look at what another session has staged meanwhile."""
    return False


@variant(f"{REGISTRY}:registered_writers", catches=("writers-three",))
def pi_has_no_writer(world, keychain=None):
    """Connecting a server on Pi is left to a human who is not there."""
    return registered_rule(world, keychain)[:2]


@variant(f"{CODEX}:entry_of", catches=("writers-runtime-format", "writers-codex-file-schema", "writers-three"))
def claudes_shape_is_written_everywhere(credential):
    """One format for all."""
    return claude_entry_rule(credential)


@variant(f"{CLAUDE}:ClaudeWriter.write", catches=("writers-written-at-every-spawn",))
async def claudes_store_is_written_once(self, world, credentials):
    """What is there is taken for what was authorized."""
    wanted = staging.usable(credentials, world.clock.now())
    if wanted and await world.files.stat(self.path) is None:
        document = claude_merged_rule({}, wanted, world.clock.now())
        await world.files.make_directory(self.directory, mode=0o700)
        await world.files.write_atomic(self.path, store_file.text_of(document).encode(), mode=0o600)
        return self.path
    return None


@variant(
    f"{CODEX}:rewritten", catches=("writers-codex-rewrites-every-spawn", "writers-codex-overwrites-unconditionally")
)
def codex_is_written_only_where_it_has_no_entry(document, credentials):
    """What is there is taken for good."""
    return codex_rewritten_rule(document, [one for one in credentials if one.credential_key not in document])


@variant(f"{CODEX}:rewritten", catches=("writers-codex-overwrites-unconditionally",))
def codex_keeps_the_fresher_entry(document, credentials):
    """Claude's rule for Codex's store."""
    ours = [
        one
        for one in credentials
        if not claude.fresher_on_disk((document.get(one.credential_key) or {}).get("expires_at"), one.expires_at_ms, 0)
    ]
    return codex_rewritten_rule(document, ours)


@variant(f"{STAGING}:stage", catches=("writers-input-resolved-credential",))
def an_expiry_is_made_up(row, server, runtime):
    """A token without an expiry gets an hour."""
    staged = stage_rule(row, server, runtime)
    return staged if staged.expires_at_ms is not None else replace(staged, expires_at_ms=1_800_003_600_000)


@variant(f"{PI}:entry_of", catches=("writers-pi-nothing-synthesized", "writers-input-resolved-credential"))
def pi_gets_a_scope_that_nobody_gave(credential):
    """Members that Pi does not need, for completeness."""
    entry = pi_entry_rule(credential)
    return {**entry, "tokens": {"scope": "offline_access", "expiresAt": 1_900_000_000, **entry["tokens"]}}


@variant(f"{STAGING}:usable", catches=("writers-no-credential-not-written",))
def what_is_expired_or_empty_is_written_too(credentials, now):
    """A runtime gets whatever there is."""
    return tuple(credentials)


@variant(f"{STAGING}:is_active", catches=("writers-no-credential-not-written",))
def expired_credentials_are_written(credential, now):
    """Only the token counts."""
    return True


@variant(f"{CLAUDE}:ClaudeWriter.write", catches=("writers-empty-list",))
async def claude_writes_an_empty_store(self, world, credentials):
    """Nothing to write is written."""
    document = claude_merged_rule({}, staging.usable(credentials, world.clock.now()), world.clock.now())
    await world.files.make_directory(self.directory, mode=0o700)
    await store_file.replace(world, self.path, document)
    return self.path


@variant(f"{STORE_FILE}:replace", catches=("writers-secret-file-mode", "store-atomic-replace"))
async def stores_are_written_in_place(world, path, document, mode=0o600):
    """Truncated, then written, with the mode of any file."""
    await world.files.write(path, store_file.text_of(document).encode())


@variant(f"{STORE_FILE}:replace", catches=("writers-secret-file-mode",))
async def a_store_keeps_the_mode_it_has(world, path, document, mode=0o600):
    """Whoever could read it before still can."""
    await world.files.write_atomic(path, store_file.text_of(document).encode())


@variant(f"{STORE_FILE}:sweep", catches=("writers-secret-file-mode",))
async def what_a_killed_writer_left_stays(world, path):
    """A temporary file with the tokens in it lies there for ever."""


@variant(f"{STORE_FILE}:read_text", catches=("writers-secret-file-mode",))
async def a_store_that_cannot_be_read_counts_as_empty(world, path):
    """And is replaced, the account's tokens with it."""
    try:
        return (await world.files.read(path)).decode(errors="replace")
    except OSError:
        return None


@variant(f"{STORE_FILE}:document_of", catches=("writers-missing-store-not-error", "store-corrupt-store"))
def an_unreadable_store_holds_something(text):
    """What cannot be parsed is kept as a text, and the entries never get into it."""
    return store_file.parse(text) or {"unreadable": text}


@variant(f"{CLAUDE}:without", catches=("writers-delete-returns-removed",))
def deleting_drops_the_other_blocks(document, keys):
    """The file is written again from what is known."""
    removed = claude_without_rule(document, keys)
    return removed._replace(document={claude.SERVERS: claude.entries_of(removed.document)})


@variant(f"{CLAUDE}:without", catches=("writers-delete-returns-removed",))
def deleting_tells_what_was_asked(document, keys):
    """All names come back, whether or not they were there."""
    return claude_without_rule(document, keys)._replace(keys=tuple(keys))


@variant(f"{CLAUDE}:entry_of", catches=("writers-client-secret-not-carried",))
def a_secret_is_carried_to_claude(credential):
    """So that the runtime could renew for a confidential client."""
    return {**claude_entry_rule(credential), "clientSecret": "s3cr3t"}


# --- Claude


@variant(f"{CLAUDE}:store_path", catches=("writers-claude-path",))
def claudes_store_is_the_config_file(directory):
    """Written into `.claude.json`."""
    return f"{directory}.json"


@variant(f"{CLAUDE}:merged", catches=("writers-claude-path", "store-other-blocks-kept"))
def claudes_entries_stand_at_the_top(document, credentials, now):
    """No block around them."""
    return {**document, **claude_merged_rule({}, credentials, now)[claude.SERVERS]}


@variant(f"{CLAUDE}:entry_of", catches=("writers-claude-entry",))
def claudes_expiry_is_in_seconds(credential):
    """Reads as long expired."""
    entry = claude_entry_rule(credential)
    return {**entry, "expiresAt": entry["expiresAt"] // 1000} if "expiresAt" in entry else entry


@variant(f"{CLAUDE}:entry_of", catches=("writers-claude-entry",))
def claudes_missing_expiry_is_zero(credential):
    """An unknown time is a time."""
    return {"expiresAt": 0, "refreshToken": None, **claude_entry_rule(credential)}


@variant(f"{CLAUDE}:merged", catches=("writers-claude-keeps-other-blocks", "store-other-blocks-kept"))
def claudes_block_is_replaced_whole(document, credentials, now):
    """Only what this session has is written."""
    return {**document, claude.SERVERS: claude_merged_rule({}, credentials, now)[claude.SERVERS]}


@variant(f"{CLAUDE}:merged", catches=("store-other-blocks-kept", "writers-claude-keeps-other-blocks"))
def claudes_file_is_rewritten_from_zimmers_data(document, credentials, now):
    """The account is signed out."""
    return {claude.SERVERS: claude_merged_rule(document, credentials, now)[claude.SERVERS]}


@variant(f"{STAGING}:stage", catches=("writers-claude-key-is-protocol-key",))
def claude_gets_codexs_key(row, server, runtime):
    """One key for all."""
    staged = stage_rule(row, server, runtime)
    return replace(
        staged, credential_key=server.runtime_keys["codex"] if runtime == "claude" else staged.credential_key
    )


@variant(f"{CLAUDE}:fresher_on_disk", catches=("writers-claude-merge-fresher",))
def zimmers_entry_always_wins(disk_ms, ours_ms, now_ms):
    """Overwrites without a look."""
    return False


@variant(f"{CLAUDE}:fresher_on_disk", catches=("writers-claude-merge-fresher",))
def equal_times_are_zimmers(disk_ms, ours_ms, now_ms):
    """Later, not at least as late."""
    return isinstance(disk_ms, int) and disk_ms > now_ms and (ours_ms is None or ours_ms < disk_ms)


@variant(f"{CLAUDE}:fresher_on_disk", catches=("writers-claude-merge-fresher",))
def an_expired_entry_on_disk_wins_if_it_is_later(disk_ms, ours_ms, now_ms):
    """The times are compared with each other alone."""
    return isinstance(disk_ms, int) and (ours_ms is None or ours_ms <= disk_ms)


@variant(f"{CLAUDE}:pair_of", catches=("writers-claude-emptied-entry",))
def an_emptied_entry_is_a_credential(entry):
    """There is an entry, so there is a pair."""
    full = {"accessToken": "none", **entry} if isinstance(entry, dict) else {"accessToken": "none"}
    return claude_pair_rule({**full, "accessToken": full["accessToken"] or "none"})


# --- Codex


@variant(f"{CODEX}:entry_of", catches=("writers-codex-file-schema", "writers-codex-two-schemas"))
def codexs_file_gets_the_keychains_shape(credential):
    """One schema for both."""
    return keychain_item_rule(credential).value


@variant(f"{CODEX}:keychain_item", catches=("writers-codex-keychain-schema", "writers-codex-two-schemas"))
def the_keychain_gets_the_files_shape(credential):
    """One schema for both."""
    return keychain_item_rule(credential)._replace(value=codex_entry_rule(credential))


@variant(f"{CODEX}:entry_of", catches=("writers-codex-file-schema",))
def codexs_expiry_is_in_seconds(credential):
    """Reads as long expired."""
    entry = codex_entry_rule(credential)
    return {**entry, "expires_at": entry["expires_at"] // 1000} if "expires_at" in entry else entry


@variant(f"{CODEX}:scope_list", catches=("writers-codex-scope-forms",))
def scopes_are_split_at_commas(scope):
    """Slack's scopes fall apart."""
    texts = [scope] if isinstance(scope, str) else scope or ()
    return [word for text in texts for word in text.replace(",", " ").split()]


@variant(f"{KEYCHAIN}:unverified", catches=("writers-codex-keychain-unverified",))
def the_keychain_is_reported_as_verified():
    """It passed, with a fake."""
    return {"path": "macOS keychain (security)", "status": "verified", "runtimes": ["claude", "codex"]}


@variant(f"{CODEX}:format_pin", catches=("writers-codex-format-pin",))
def no_version_is_told():
    """A format of nobody knows when."""
    return {**format_pin_rule(), "source": "openai/codex", "file": []}


@variant(f"{REGISTRY}:codex_home", catches=("writers-codex-path",))
def codexs_home_is_always_the_usual_one(place):
    """The variable is not looked at."""
    return f"{place.home}/.codex"


@variant(f"{CODEX}:without_stale", catches=("writers-codex-one-entry-per-server",))
def stale_entries_stay(entries, credential):
    """An old entry under a wrong key goes before the new one."""
    return dict(entries)


@variant(f"{CODEX}:without_stale", catches=("writers-codex-one-entry-per-server",))
def all_entries_of_a_name_go(entries, credential):
    """The URL is not compared, so another server's goes too."""
    return {
        key: entry
        for key, entry in entries.items()
        if not isinstance(entry, dict) or entry.get("server_name") != credential.server_name
    }


@variant(f"{CODEX}:entry_of", catches=("writers-codex-issuer-field",))
def the_issuer_is_left_out(credential):
    """The newer runtime never renews."""
    return {name: value for name, value in codex_entry_rule(credential).items() if name != "issuer"}


@variant(f"{CODEX}:entry_of", catches=("writers-codex-issuer-field",))
def the_issuer_gets_a_slash(credential):
    """As a URL parser writes it."""
    entry = codex_entry_rule(credential)
    return {**entry, "issuer": f"{entry['issuer']}/"} if "issuer" in entry else entry


@variant(f"{CODEX}:is_readable_to_codex", catches=("writers-codex-invalid-entry-kills-file",))
def a_credential_without_a_client_is_written(credential):
    """And no other can be read any more."""
    return True


@variant(f"{CODEX}:CodexWriter.clear_needs_auth", catches=("writers-codex-no-needs-auth", "store-codex-no-cache"))
async def codex_clears_a_cache(self, world, names):
    """Makes one where there is none."""
    await world.files.make_directory(self.directory)
    await world.files.write(f"{self.directory}/mcp-needs-auth-cache.json", b"{}")
    return tuple(names)


@variant(f"{CODEX}:keychain_item", catches=("writers-codex-keychain-schema",))
def an_unknown_expiry_is_left_out_of_the_keychain(credential):
    """As the file has it."""
    item = keychain_item_rule(credential)
    return item._replace(value={name: value for name, value in item.value.items() if value is not None})


# --- Pi


@variant(f"{PI}:PiWriter.write", catches=("writers-pi-unattended", "writers-pi-path"))
async def pi_is_left_to_auth_start(self, world, credentials):
    """The session may ask a human."""
    return


@variant(f"{PI}:staged_path", catches=("writers-pi-path",))
def pis_file_lies_in_the_directory_itself(server_name):
    """No directory for each server."""
    return "tokens.json"


@variant(f"{REGISTRY}:pi_directory", catches=("writers-pi-path-fallback",))
def pis_directory_is_the_variable_as_it_is(place):
    """A blank one is a directory too."""
    return place.variables.get("MCP_OAUTH_DIR", f"{place.home}/.pi/agent/mcp-oauth")


@variant(f"{PI}:pi_account", catches=("writers-pi-server-hash", "writers-pi-path"))
def pis_account_is_cut_short(server_name):
    """Sixteen digits, as the other keys have."""
    return f"sha256-{credential_key(server_name, {}).rpartition('|')[2]}"


@variant(f"{PI}:entry_of", catches=("writers-pi-entry",))
def pis_expiry_is_in_milliseconds(credential):
    """Fifty thousand years away."""
    entry = pi_entry_rule(credential)
    tokens = {**entry["tokens"], "expiresAt": credential.expires_at_ms}
    return {**entry, "tokens": tokens} if credential.expires_at_ms is not None else entry


@variant(f"{PI}:entry_of", catches=("writers-pi-entry", "writers-pi-nothing-synthesized"))
def pis_absent_members_are_null(credential):
    """Which spoils the entry."""
    entry = pi_entry_rule(credential)
    return {**entry, "tokens": {"refreshToken": None, "expiresAt": None, "scope": None, **entry["tokens"]}}


@variant(f"{PI}:entry_of", catches=("writers-pi-entry",))
def pi_gets_a_client_without_redirect_uris(credential):
    """A stub, so that Pi registers another client."""
    return pi_entry_rule(replace(credential, redirect_uris=(), issuer=None))


@variant(f"{PI}:PiWriter.write", catches=("writers-pi-import-deletes-file",))
async def a_vanished_file_is_a_failure(self, world, credentials):
    """What was handed in before is expected to be there."""
    before = [one for one in credentials if await world.files.stat(self.path(one.server_name)) is None]
    for one in before:
        if await self.store.get(world, pi_account(one.server_name), world.clock.now() + 5):
            pi.warn(world, f"the staged credential of '{one.server_name}' was lost")
    for one in credentials:
        await self._staged(world, one)
    return self.directory


@variant(f"{PI_STORE}:PiStore.clear", catches=("writers-pi-store-beats-file",))
async def pis_account_stays(self, world, account, until):
    """Only the file is written."""
    return False


@variant(f"{PI_STORE}:accounts_to_remove", catches=("writers-pi-chunked-remove",))
def only_the_account_itself_goes(account, text):
    """Its parts stay."""
    return accounts_rule(account, text)[-1:]


@variant(f"{PI_STORE}:manifest_of", catches=("writers-pi-chunked-remove",))
def any_number_of_parts_is_followed(text):
    """A hundred thousand removals."""
    document = document_of(text)
    count, digest = document.get("chunkCount"), document.get("chunkDigest")
    return pi_store.Manifest(int(count), str(digest)) if isinstance(count, int | float) else None


@variant(f"{PI}:PiWriter._cleared", catches=("writers-pi-store-unreachable-stages",))
async def each_server_waits_for_the_keyring_anew(self, world, name, until):
    """Five seconds for each."""
    try:
        await self.store.clear(world, pi_account(name), world.clock.now() + 5)
    except OSError as error:
        pi.warn(world, str(error))
    return True


@variant(f"{PI}:PiWriter.write", catches=("writers-pi-one-bad-does-not-lose-others",))
async def the_first_failure_ends_a_write(self, world, credentials):
    """Whoever comes behind it gets nothing."""
    for credential in staging.usable(credentials, world.clock.now()):
        await self._cleared(world, credential.server_name, world.clock.now() + 5)
        if not await self._staged(world, credential):
            return None
    return self.directory


@variant(f"{PI}:PiWriter.read", catches=("writers-pi-two-way",))
async def pi_gives_nothing_back(self, world, keys=None):
    """Only handing in is done."""
    return {}


@variant(f"{PI}:PiWriter.read", catches=("writers-pi-read-store-only",))
async def the_staged_file_is_read_back(self, world, keys=None):
    """What Zimmer wrote itself passes for a rotation."""
    found = {}
    for name in keys or ():
        text = await store_file.read_text(world, self.path(name))
        pair = None if text is None else pi_store.pair_of(text)
        if pair is not None:
            found[name] = pair
    return found


@variant(f"{PI_STORE}:joined", catches=("writers-pi-read-store-only",))
def parts_are_joined_without_a_check(manifest, parts):
    """Whatever is there."""
    return "".join(part or "" for part in parts)


@variant(f"{PI}:in_own_directory", catches=("writers-pi-plaintext-scope",))
async def the_staged_file_is_readable(world, path, entry):
    """As any file is."""
    await world.files.make_directory(path.rpartition("/")[0])
    await world.files.write(path, store_file.text_of(entry).encode())


@variant(f"{PI}:PiWriter.discard", catches=("writers-pi-plaintext-scope",))
async def what_was_staged_stays_for_ever(self, world, names):
    """Nobody cleans it up."""


@variant(f"{STAGING}:stage", catches=("writers-pi-serverurl-exact",))
def the_resource_is_staged_as_the_url(row, server, runtime):
    """The canonical form of the URL."""
    return replace(stage_rule(row, server, runtime), server_url=server.url.lower().rstrip("/").replace(":443", ""))


@variant(f"{PI_STORE}:pair_of", catches=("writers-pi-name-shared-account",))
def the_url_of_an_entry_is_not_told(text):
    """Whoever reads it takes it for the server of that name."""
    pair = pi_pair_rule(text)
    return None if pair is None else replace(pair, server_url=None)


@variant("fake_runtimes.pi.access:Access.refused", catches=("writers-pi-rotates-like-claude",))
async def pi_never_renews(self, failure, until_seconds):
    """A token that is refused is the end of it."""
    self.ended = True
    return failure


@variant("harness.reference.session.injection:is_renewed_here", catches=("writers-codex-zimmer-refreshes",))
def the_stored_token_is_handed_over_as_it_is(row, now):
    """However soon it expires."""
    return False


@variant("harness.reference.session.injection:hand_over", catches=("writers-written-at-every-spawn",))
async def nothing_is_written_where_there_is_a_store(world, writer, servers):
    """It was written when the consent was given."""
    if await world.files.stat(writer.path) is not None:
        return ()
    return await hand_over_rule(world, writer, servers)


@variant("harness.reference.credentials.cron:renew", catches=("writers-pi-no-push",))
async def the_job_hands_out_what_it_renewed(world, writers, row, run):
    """Into the stores of sessions that run."""
    await renew_rule(world, writers, row, run)
    renewed = await table.find(world, row.credential_key) or row
    for writer in writers:
        staged = StagedCredential(
            writer.key_for(renewed), renewed.server_name, renewed.server_url, renewed.client_id, renewed.access_token
        )
        await writer.write(world, [staged])


@variant(f"{STAGING}:in_milliseconds", catches=("writers-codex-invalid-entry-kills-file",))
def any_time_is_written_as_it_is(seconds):
    """A number that no runtime has a time for keeps Codex from reading its whole file."""
    return int(seconds) * 1000
