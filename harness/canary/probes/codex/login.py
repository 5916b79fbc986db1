"""A sign-in of Codex's own: whether a later start still has it, and renews it (openai/codex#15122 and #17265).

Where both hold, nobody has to write Codex's store in its place. That is what a machine without a keyring shows, where
the store is a file.
"""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from fake_runtimes.codex.bugs import LOGIN_IS_LOST, REFRESH_IS_UNUSED
from harness.canary.claims import Claim, probe
from harness.canary.probes.codex.asking import STORE, configure, now_ms, spoken_to, statuses
from harness.canary.probes.codex.refresh import Case, Realm, realm, site
from harness.canary.trial import Finished, Trial, end_group

KEPT, ENDED = "kept", "ended"
LIMIT_SECONDS = 20.0
AUTHORIZE = re.compile(r"https?://\S+[?&]response_type=code\S*")
STARTS = 2
REFUSED = 400
OF_LOGIN, OF_RENEWAL = "token of the login", "token of the renewal"
GOOD_START = ["ready", OF_LOGIN]
NO_BROWSERS = "no-browsers"
"""A folder with no program in it: the one that signs in is to show no page on anybody's screen."""


@probe(
    Claim(
        "codex.login.kept",
        "what somebody has signed in to with `codex mcp login` is used at every later start, where the store is a file",
        "seed 002",
        assumes=lambda seen: all(start == GOOD_START for start in seen["starts"]),
        relied_on=("writers-codex-workaround-bugs",),
        affects="remote entries that a person signs in to with Codex itself",
        shows={LOGIN_IS_LOST: lambda seen: any(start != GOOD_START for start in seen["starts"])},
    ),
    Claim(
        "codex.login.renewed",
        "and is renewed at a start after it has expired",
        "seed 002",
        assumes=lambda seen: seen["start"] == ["ready", OF_RENEWAL],
        relied_on=("writers-codex-workaround-bugs",),
        affects="remote entries that a person signs in to with Codex itself",
        reads=("renewal_needs_issuer",),
        shows={REFRESH_IS_UNUSED: lambda seen: seen["token requests"] == 0},
    ),
    Claim(
        "codex.login.entry",
        "which members the stored entry of a sign-in has",
        affects="who reads that store",
        reads=("renewal_needs_issuer",),
    ),
    seconds=4.0,
)
def logins(trial: Trial) -> Mapping[str, Any]:
    """Two servers are signed in to, one after the other; then the program is started anew, and once more."""
    realms = {name: realm(name, Case("")) for name in (KEPT, ENDED)}
    with trial.serving(site=site(realms)) as urls:
        base = urls["site"].removesuffix("/mcp")
        configure(trial, {name: {"url": f"{base}/{name}"} for name in realms})
        ends = {name: signed_in(trial, name) for name in realms}
        stored = trial.read_json(STORE) or {}
        starts = [start(trial, realms[KEPT], KEPT) for _ in range(STARTS)]
        expire(trial, ENDED)
        before = realms[ENDED].token_calls
        renewed = start(trial, realms[ENDED], ENDED)
    return {
        "codex.login.kept": {"login": ended(ends[KEPT]), "starts": starts},
        "codex.login.renewed": {"start": renewed, "token requests": realms[ENDED].token_calls - before},
        "codex.login.entry": {each["server_name"]: sorted(each) for each in stored.values()}.get(KEPT),
    }


def signed_in(trial: Trial, name: str) -> Finished:
    """`codex mcp login`, by somebody who goes at once where it sends them."""
    nowhere = trial.folder / NO_BROWSERS
    nowhere.mkdir(exist_ok=True)
    process = trial.start("mcp", *spoken_to(trial), "login", name, env={"PATH": str(nowhere)})
    over = threading.Timer(LIMIT_SECONDS, end_group, (process.pid,))
    over.daemon = True
    over.start()
    said = {"out": "", "error": ""}

    def listen(which: str, stream: Iterable[bytes]) -> None:
        for line in stream:
            said[which] += line.decode("utf-8", "replace")
            for url in AUTHORIZE.findall(line.decode("utf-8", "replace")):
                visit(url)

    readers = [
        threading.Thread(target=listen, args=(which, stream or ()), daemon=True)
        for which, stream in (("out", process.stdout), ("error", process.stderr))
    ]
    for reader in readers:
        reader.start()
    code = process.wait()
    late = not over.is_alive()
    over.cancel()
    end_group(process.pid)
    for reader in readers:
        reader.join(LIMIT_SECONDS)
    return Finished(None if late else code, said["out"], said["error"], 0.0)


def visit(url: str) -> None:
    """What a browser does with the address, up to the page that thanks for it."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with suppress(urllib.error.URLError, OSError), direct.open(url, timeout=LIMIT_SECONDS) as page:
        page.read()


def ended(run: Finished) -> list[Any]:
    """How a sign-in came out."""
    lines = [line.strip() for line in run.stdout.splitlines() if line.strip()]
    return [run.exit_code, lines[-1] if lines else ""]


def start(trial: Trial, one: Realm, name: str) -> list[str | None]:
    """A start: what became of the server, and whose token it was let in with."""
    seen = len(one.protected.requests)
    status = statuses(trial, name)[name].status
    let_in = [knocked.generation for knocked in one.protected.requests[seen:] if knocked.status < REFUSED]
    return [status, None if not let_in else OF_LOGIN if let_in[-1] == 1 else OF_RENEWAL]


def expire(trial: Trial, name: str) -> None:
    """A sign-in whose token has ended by the store's own word, though the server would still take it."""
    store = trial.read_json(STORE) or {}
    for each in store.values():
        if each["server_name"] == name:
            each["expires_at"] = now_ms() - 60_000
    trial.write_json(STORE, store, mode=0o600)
