"""What is kept of a credential from session to session, and what beats what was handed in later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fake_servers.mcp.behaviour import Behaviour
from harness.canary.claims import Claim, probe
from harness.canary.probes.doors import Doors
from harness.canary.probes.pi.ground import CACHE, configure, credential, hand_in, session
from harness.canary.probes.pi.keyring import keyring
from harness.canary.trial import Trial

NAMES = ("kept", "moved", "dead", "shared", "long")
LONG = "t" * 2500


@probe(
    Claim(
        "pi.store.imported",
        "what was handed in is in the user's keyring after a session, and the file is gone",
        "seed 002",
        assumes=["kept-1", "gone", "kept-1"],
        relied_on=("writers-pi-canary-real-adapter", "writers-pi-import-deletes-file"),
        affects="every stored OAuth credential",
    ),
    Claim(
        "pi.store.again",
        "a later session without a file bears it too",
        "seed 002",
        assumes="kept-1",
        relied_on=("writers-pi-two-way",),
        affects="every stored OAuth credential",
    ),
    Claim(
        "pi.store.beats-file",
        "what the keyring holds beats what is handed in later, which goes unread",
        assumes=["kept-1", "gone"],
        relied_on=("writers-pi-store-beats-file", "writers-pi-canary-real-adapter"),
        affects="every credential that is renewed",
    ),
    Claim(
        "pi.store.beats-file-dead",
        "also where the server refuses what the keyring holds",
        assumes=["dead-1", "gone"],
        relied_on=("writers-pi-store-beats-file",),
        affects="every credential that is renewed",
    ),
    Claim(
        "pi.store.moved",
        "a server whose url has changed bears nothing, though the keyring holds a credential of its name",
        "seed 002",
        assumes=None,
        relied_on=("writers-pi-name-shared-account", "writers-pi-serverurl-exact", "reconcile-pi-fake-url-guard"),
        affects="catalog changes of a url",
    ),
    Claim(
        "pi.store.shared",
        "another home, agent directory and project bears the same for a server of that name and url",
        assumes="shared-1",
        relied_on=("writers-pi-name-shared-account", "reconcile-pi-account-isolation"),
        affects="sessions beside one another",
    ),
    Claim("pi.store.entry", "what the keyring holds of a credential", relied_on=("reconcile-pi-types-checked",)),
    Claim(
        "pi.store.long",
        "a credential of more than 1000 characters is kept in parts, or whole",
        relied_on=("reconcile-pi-probe-chunked-entry", "writers-pi-chunked-remove"),
        affects="long tokens",
        reads=("long_entries_in_parts",),
        derive={"long_entries_in_parts": lambda seen: "chunkCount" in seen},
    ),
    seconds=8.0,
)
def keyring_entries(trial: Trial) -> Mapping[str, Any]:
    """Three sessions: with files, with other files, and from another home."""
    names = {name: f"canary-{name}" for name in NAMES}
    doors = Doors({names["dead"]: Behaviour(requires_bearer=("dead-2",))})
    with keyring(trial) as store, trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        url = {name: f"{base}/{given}" for name, given in names.items()}
        servers = {given: {"url": url[name]} for name, given in names.items()}
        first = {name: hand_in(trial, given, credential(url[name], f"{name}-1")) for name, given in names.items()}
        long_one = credential(url["long"], "long-1")
        long_one["tokens"]["refreshToken"] = LONG
        hand_in(trial, names["long"], long_one)
        configure(trial, servers)
        session(trial)
        seen: dict[str, Any] = {}
        entry = json.loads(store.read(names["kept"]) or "null")
        token = entry["tokens"]["accessToken"] if entry else None
        seen["pi.store.imported"] = [doors.shown(names["kept"]), state(first["kept"]), token]
        seen["pi.store.entry"] = shape(entry)
        seen["pi.store.long"] = sorted(json.loads(store.read(names["long"]) or "{}"))
        doors.visits.clear()
        trial.place(CACHE).unlink(missing_ok=True)
        again = {name: hand_in(trial, names[name], credential(url[name], f"{name}-2")) for name in ("kept", "dead")}
        servers[names["moved"]]["url"] += "/elsewhere"
        configure(trial, servers)
        session(trial)
        seen["pi.store.beats-file"] = [doors.shown(names["kept"]), state(again["kept"])]
        seen["pi.store.beats-file-dead"] = [doors.shown(names["dead"]), state(again["dead"])]
        seen["pi.store.moved"] = doors.shown(names["moved"])
        doors.visits.clear()
        other = "~/elsewhere/agent"
        shared = {given: servers[given] for given in (names["shared"], names["kept"])}
        configure(trial, shared, f"{other}/mcp.json")
        trial.place("~/.pi/agent/mcp.json").unlink()
        home = str(trial.home / "elsewhere")
        session(trial, env={"HOME": home, "PI_CODING_AGENT_DIR": f"{home}/agent"}, agent=other)
        seen["pi.store.again"] = doors.shown(names["kept"])
        seen["pi.store.shared"] = doors.shown(names["shared"])
    return seen


def state(path: Any) -> str:
    """Whether a file is there."""
    return "there" if path.exists() else "gone"


def shape(value: Any) -> Any:
    """The names of an entry's members, as deep as they go."""
    return {name: shape(member) for name, member in value.items()} if isinstance(value, dict) else type(value).__name__
