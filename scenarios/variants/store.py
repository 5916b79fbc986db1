"""Known-bad variants of the stores that sessions share: locks, the needs-auth cache, the loopback predicate."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from fake_runtimes.claude import stored as cli_stored
from harness.reference.credentials.writers import needs_auth, store_file
from harness.reference.credentials.writers.registry import session_writer
from harness.reference.credentials.writers.removal import Removed, without_keys
from harness.reference.credentials.writers.store_file import changed as changed_rule
from harness.reference.credentials.writers.store_file import locked as locked_rule
from harness.reference.oauth.endpoints import acceptable_endpoint as acceptable_rule
from harness.reference.session import injection
from harness.reference.session.injection import clear_needs_auth as clear_rule
from harness.requirements.variants import variant

STORE_FILE = "harness.reference.credentials.writers.store_file"
NEEDS_AUTH = "harness.reference.credentials.writers.needs_auth"
CLAUDE = "harness.reference.credentials.writers.claude"
PI = "harness.reference.credentials.writers.pi"
REGISTRY = "harness.reference.credentials.writers.registry"
LOOPBACK = "harness.reference.oauth.loopback"


class NoLock:
    """A lock of this process alone, which keeps no other out."""

    async def release(self):
        """Free it."""


@variant(
    f"{STORE_FILE}:locked",
    catches=(
        "writers-claude-lock",
        "store-lock-cross-process",
        "store-three-writers-one-file",
        "writers-codex-no-lock",
        "store-codex-store-unlocked-race",
        "store-clear-under-lock",
    ),
)
async def the_lock_is_a_mutex_of_the_process(world, directory):
    """Other processes do not see it."""
    return NoLock()


@variant(f"{STORE_FILE}:rewrite", catches=("store-lock-read-and-write", "writers-claude-lock"))
async def only_the_write_is_locked(world, path, change, *, mode=0o600):
    """What was read before the lock is written under it."""
    await world.files.make_directory(store_file.directory_of(path), mode=0o700)
    document, result = change(store_file.document_of(await store_file.read_text(world, path)))
    lock = await locked_rule(world, store_file.directory_of(path))
    if document is not None:
        await store_file.replace(world, path, document, mode)
    await lock.release()
    return result


@variant(f"{STORE_FILE}:lock_path", catches=("store-lock-sibling-file",))
def the_store_itself_is_locked(directory):
    """After the rename two processes hold locks on different files."""
    return f"{directory}/.credentials.json"


@variant(f"{CLAUDE}:write_account", catches=("store-lock-shared-with-account-writer", "store-three-writers-one-file"))
async def the_account_has_a_lock_of_its_own(world, directory, tokens):
    """One lock for each block."""
    path = f"{directory}/.credentials.json"
    await world.files.make_directory(directory, mode=0o700)
    lock = await world.files.lock(f"{directory}/.account.lock")
    document = await store_file.read_document(world, path)
    await store_file.replace(world, path, {**document, "claudeAiOauth": dict(tokens)})
    await lock.release()


@variant(f"{STORE_FILE}:rewrite", catches=("store-lock-released-on-error",))
async def a_failing_writer_keeps_the_lock(world, path, change, *, mode=0o600):
    """A lock file whose existence is the lock."""
    directory = store_file.directory_of(path)
    await world.files.make_directory(directory, mode=0o700)
    for _ in range(50):
        if await world.files.stat(f"{directory}/.held") is None:
            break
        await world.clock.sleep(1)
    await world.files.write(f"{directory}/.held", b"")
    lock = await locked_rule(world, directory)
    result = await changed_rule(world, path, change, mode)
    await lock.release()
    await world.files.remove(f"{directory}/.held")
    return result


@variant(f"{STORE_FILE}:lock_path", catches=("store-lock-per-directory",))
def there_is_one_lock_for_all(directory):
    """Whoever relocates a store waits for everybody."""
    return f"/home/u/{store_file.LOCK_FILE}"


@variant(f"{REGISTRY}:claude_directory", catches=("store-keyed-by-home",))
def claudes_store_lies_in_the_clone(place):
    """Derived from where the session works."""
    return f"{place.directory}/.claude"


@variant(f"{NEEDS_AUTH}:without_names", catches=("store-clear-only-named", "gate-needs-auth-clear-by-name"))
def the_whole_cache_goes(document, names):
    """Other sessions' entries with it."""
    return Removed(tuple(names), {})


@variant(f"{NEEDS_AUTH}:without_names", catches=("gate-needs-auth-clear-by-name",))
def entries_are_looked_for_by_key(document, names):
    """A credential key never matches a bare name."""
    keys = [key for key in document if "|" in key and key.partition("|")[0] in names]
    return without_keys(document, keys)


@variant(f"{STORE_FILE}:rewrite_existing", catches=("store-clear-tolerant", "gate-needs-auth-clear-by-name"))
async def clearing_makes_a_file(world, path, change, *, mode=0o600):
    """An empty cache where there was none."""

    def always(document):
        after, result = change(document)
        return (document if after is None else after), result

    return await store_file.rewrite(world, path, always, mode=mode)


@variant(f"{NEEDS_AUTH}:struck_off", catches=("store-clear-under-lock",))
async def the_cache_has_no_lock(world, directory, names):
    """Two that clear at once lose one."""
    path = f"{directory}/{needs_auth.CACHE_FILE}"
    document = await store_file.read_document(world, path)
    removed = needs_auth.without_names(document, names)
    if removed.keys:
        await store_file.replace(world, path, removed.document, None)
    return removed.keys


@variant(f"{NEEDS_AUTH}:clear", catches=("store-clear-failure-harmless", "gate-needs-auth-clear-best-effort"))
async def a_failure_to_clear_is_told_to_nobody(world, directory, names):
    """Neither warned of nor survived alike: the write that comes with it is taken back."""
    try:
        return await needs_auth.struck_off(world, directory, names)
    except OSError:
        await world.files.remove_tree(f"{directory}/.credentials.json")
        return ()


@variant(f"{CLAUDE}:ClaudeWriter.clear_needs_auth", catches=("store-clear-follows-config-dir",))
async def the_hosts_cache_is_cleared(self, world, names):
    """Which a session with a directory of its own never reads."""
    return await needs_auth.clear(world, f"{world.env.variables['HOME']}/.claude", names)


@variant(
    f"{NEEDS_AUTH}:clear",
    catches=("gate-needs-auth-clear-whole-spawn", "store-clear-whole-spawn", "store-needs-auth-global"),
)
async def nothing_is_ever_cleared(world, directory, names):
    """The injected token stays invisible."""
    return ()


@variant(f"{PI}:PiWriter.clear_needs_auth", catches=("store-pi-no-cache",))
async def pi_answers_as_if_it_had_cleared(self, world, names):
    """All names come back."""
    return tuple(names)


# --- loopback


@variant(f"{LOOPBACK}:localhost_flow", catches=("store-loopback-exact-hosts",))
def the_whole_network_is_loopback(redirect_uri):
    """All of 127.0.0.0/8."""
    host = re.search(r"://(?:[^/@]*@)?(\[[^]]*\]|[^:/?#]*)", redirect_uri or "")
    return host is not None and (host[1].lower() in ("localhost", "[::1]") or host[1].startswith("127."))


@variant(f"{LOOPBACK}:localhost_flow", catches=("store-loopback-host-not-substring", "store-loopback-exact-hosts"))
def the_name_may_stand_anywhere(redirect_uri):
    """A search in the text."""
    return any(host in (redirect_uri or "").lower() for host in ("localhost", "127.0.0.1", "[::1]"))


@variant(f"{LOOPBACK}:localhost_flow", catches=("store-loopback-malformed-false",))
def a_bare_host_and_port_will_do(redirect_uri):
    """`localhost:3000/callback` is taken for a URL without its scheme."""
    text = redirect_uri or ""
    host = re.match(r"[^:/?#]*", text.partition("://")[2] or text)
    return host is not None and host[0] in ("localhost", "127.0.0.1")


@variant(f"{LOOPBACK}:localhost_flow", catches=("store-loopback-case-and-userinfo",))
def the_host_is_what_stands_before_the_colon(redirect_uri):
    """Userinfo passes for a host."""
    text = urlsplit((redirect_uri or "").split()[0]).netloc if (redirect_uri or "").strip() else ""
    return text.partition("@")[0].partition(":")[0] in ("localhost", "127.0.0.1", "[")


@variant("harness.reference.oauth.endpoints:acceptable_endpoint", catches=("store-loopback-gates-nothing",))
def cleartext_is_fine_on_loopback(endpoint):
    """The predicate decides something."""
    from harness.reference.oauth import loopback

    return acceptable_rule(endpoint) or loopback.localhost_flow(endpoint)


# --- around a spawn

INJECTION = "harness.reference.session.injection"


@variant(f"{INJECTION}:clear_needs_auth", catches=("store-inject-clears-entry",))
async def an_injection_leaves_the_memory_alone(world, writer, names):
    """It is cleared where a failure was seen, and nowhere else."""


@variant(f"{INJECTION}:inject", catches=("store-inject-clears-before-spawn",))
async def the_memory_is_cleared_after_the_spawn(world, order, ready, judged, variables):
    """The process has read it by then."""
    writer = session_writer(world, order.runtime, variables)
    keys = {row.credential_key for row in judged.usable}
    await injection.hand_over(world, writer, [one for one in judged.listed if one.credential_key in keys])

    async def later():
        await world.clock.sleep(0.001)
        await clear_rule(world, writer, injection.remote_names(ready))

    world.tasks.start(later(), "clear")


@variant("fake_runtimes.claude.access:Access.change", catches=("store-cli-does-not-lock",))
async def the_runtime_takes_zimmers_lock(self, entry):
    """So that nothing could ever be lost."""
    folder = self.session.homes.config
    lock = await self.world.files.lock(f"{folder}/{store_file.LOCK_FILE}")
    text = cli_stored.store_with(await self.session.store_text(), self.server, entry)
    await self.world.files.write_atomic(f"{folder}/.credentials.json", text.encode(), mode=0o600)
    await lock.release()


@variant(
    "harness.reference.credentials.writers.registry:forget_refusal",
    catches=("store-authorize-clears-entry",),
)
async def a_consent_leaves_the_memory_to_the_next_spawn(world, server_name):
    """Stores the tokens, and lets the runtimes go on believing that the server wants a sign-in."""
    return ()


@variant(f"{STORE_FILE}:remove_unused", catches=("store-cli-does-not-lock", "store-atomic-replace"))
async def every_temporary_file_is_a_left_over(world, path, until):
    """Takes away what the runtime, which knows nothing of the lock, is about to rename."""
    await world.files.remove(path)
