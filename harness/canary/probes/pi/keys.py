"""Under which name Pi's adapter looks for a credential that was handed in, and for which entries it does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour
from harness.canary.claims import Claim, probe
from harness.canary.probes.doors import Doors
from harness.canary.probes.pi.ground import AGENT, HANDOFF, configure, credential, hand_in, session, told_of
from harness.canary.trial import Trial
from harness.reference.credentials.key import pi_account, runtime_key

REFERENCE = "reference"
ACCOUNTS: Mapping[str, str] = {
    "plain": "plain",
    "punctuation": "my-srv.x",
    "capitals": "UPPER",
    "unicode": "ünï-日本",
    "spaces": " a b ",
    "slash": "@scope/server",
    "pipe": "pi|pe",
}
"""Names of servers that may lie under another name than their own."""


def hashed(text: str) -> str:
    """The account that a text would have."""
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()}"


def forms(name: str, url: str) -> Iterator[tuple[str, str]]:
    """The account by the reference, then others, each with its name; some may be the same."""
    yield REFERENCE, pi_account(name)
    yield "name alone", name
    yield "of the url", hashed(url)
    yield "of name and url", hashed(f"{name}|{url}")
    yield "of a key like Claude's", hashed(runtime_key("claude", name, {"type": "http", "url": url}, {}))
    yield "of the name in small letters", hashed(name.lower())
    yield "of the name without spaces", hashed(name.strip())
    yield "of the name made plain", hashed("".join(c if c.isascii() and c.isalnum() else "_" for c in name))
    yield "of the name decomposed", hashed(name.replace("ü", "u\u0308").replace("ï", "i\u0308"))
    yield "without its prefix", hashlib.sha256(name.encode()).hexdigest()


@probe(
    *(
        Claim(
            f"pi.key.{case}",
            f"a credential for a server named `{name}` lies under the hash of just that name",
            "seed 002",
            assumes=REFERENCE,
            relied_on=("writers-pi-server-hash", "writers-pi-key-is-server-name", "reconcile-key-pi"),
            affects="every stored OAuth credential of such a server",
        )
        for case, name in ACCOUNTS.items()
    ),
    seconds=4.0,
)
def accounts(trial: Trial) -> Mapping[str, Any]:
    """All names in one session; the observation is the form under which the shown token lay."""
    doors = Doors()
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        servers = {name: {"url": f"{base}/{case}"} for case, name in ACCOUNTS.items()}
        staged: dict[str, tuple[str, str, str]] = {}
        for number, (name, server) in enumerate(servers.items()):
            for form, under in forms(name, server["url"]):
                staged.setdefault(under, (name, server["url"], f"{number}:_{form}".replace(" ", "_")))
        for under, (name, url, token) in staged.items():
            hand_in(trial, name, credential(url, token), under=under)
        configure(trial, servers)
        session(trial)
    return {f"pi.key.{case}": form_of(doors.shown(case), number) for number, case in enumerate(ACCOUNTS)}


def form_of(token: str | None, number: int) -> str | None:
    """The form that a token of this server lay under; None where none was shown."""
    wanted = f"{number}:_"
    return token.removeprefix(wanted).replace("_", " ") if token and token.startswith(wanted) else None


USED, LEFT = ["used", "gone"], ["anonymous", "there"]
REFUSED = Behaviour(status=401, challenge="Bearer", body="no")


class Case(NamedTuple):
    """An entry and what is handed in for it. `url` is where the credential says that it is for, behind the server's."""

    says: str
    assumes: list[str]
    entry: Mapping[str, Any] = {}
    suffix: str = ""
    url: str = "{url}"
    handed: Mapping[str, Any] = {}
    text: str = ""
    server: Behaviour = Behaviour()
    relied_on: tuple[str, ...] = ()


EXACT = ("writers-pi-serverurl-exact", "reconcile-pi-fake-url-guard")
CASES: Mapping[str, Case] = {
    "whole": Case("a whole credential is used", USED),
    "no-client": Case("a credential without clientInfo is used as it is", USED, handed={"clientInfo": None}),
    "no-refresh": Case("a credential without refresh token is used", USED, handed={"tokens": {"accessToken": "TOKEN"}}),
    "issuer": Case(
        "a credential with an issuer in both of its parts is used", USED,
        handed={
            "tokens": {"accessToken": "TOKEN", "issuer": "https://as.test"},
            "clientInfo": {"clientId": "c", "redirectUris": ["http://localhost/"], "issuer": "https://as.test"},
        },
        relied_on=("writers-pi-entry",),
    ),
    "expired": Case(
        "a credential that has expired is used as long as the server takes it", USED,
        handed={"tokens": {"accessToken": "TOKEN", "refreshToken": "r", "expiresAt": 1_600_000_000}},
    ),
    "unknown-fields": Case("fields that nobody knows change nothing", USED, handed={"other": 1}),
    "other-url": Case("a credential of another url is not used", LEFT, url="{url}/other", relied_on=EXACT),
    "slash": Case("a slash more makes it another url", LEFT, url="{url}/", relied_on=EXACT),
    "slash-less": Case("a slash less makes it another url", LEFT, suffix="/", url="{base}", relied_on=EXACT),
    "host-case": Case("letters of the host count as they are", LEFT, url="{capitals}", relied_on=EXACT),
    "no-url": Case("a credential without its url is not used", LEFT, handed={"serverUrl": None}, relied_on=EXACT),
    "expanded": Case(
        "the url is that of the entry after expansion", USED, suffix="/${WORD}", url="{base}/hello", relied_on=EXACT
    ),
    "unexpanded": Case(
        "the url as the entry writes it is another", LEFT, suffix="/${WORD}", url="{base}/${{WORD}}", relied_on=EXACT
    ),
    "other-url-asked": Case(
        "a credential of another url is taken over, and not used, where OAuth is asked for", ["anonymous", "gone"],
        {"auth": "oauth"}, url="{url}/other", relied_on=EXACT,
    ),
    "other-url-refused": Case(
        "a credential of another url is taken over, and not used, once the server wants one", ["anonymous", "gone"],
        url="{url}/other", server=REFUSED, relied_on=EXACT,
    ),
    "refused": Case("a credential that the server refuses is used, and taken over", USED, server=REFUSED),
    "no-token": Case("a credential without access token is passed over", LEFT, handed={"tokens": {}}),
    "null": Case(
        "a credential with a null in place of a member that may be left out is passed over", LEFT,
        handed={"tokens": {"accessToken": "TOKEN", "refreshToken": None}}, relied_on=("writers-pi-entry",),
    ),
    "late-text": Case(
        "a credential with a text for its time is passed over", LEFT,
        handed={"tokens": {"accessToken": "TOKEN", "expiresAt": "1700000000"}}, relied_on=("writers-pi-entry",),
    ),
    "no-json": Case("what is no JSON is passed over", LEFT, text="{"),
    "headers": Case("an entry with headers of its own takes no credential", LEFT, {"headers": {"X-A": "1"}}),
    "headers-oauth": Case(
        "an entry with headers that asks for OAuth takes one", USED, {"headers": {"X-A": "1"}, "auth": "oauth"}
    ),
    "no-headers": Case("an entry whose headers are empty takes one", USED, {"headers": {}}),
    "auth-oauth": Case("an entry that asks for OAuth takes one", USED, {"auth": "oauth"}),
    "auth-off": Case("an entry with `auth` false takes none", LEFT, {"auth": False}),
    "auth-bearer": Case("an entry with a token of its own takes none", LEFT, {"auth": "bearer"}),
    "oauth-off": Case("an entry with `oauth` false takes none", LEFT, {"oauth": False}),
    "type": Case("`type` changes nothing", USED, {"type": "http"}),
}  # fmt: skip


def starting_with(expected: list[Any]) -> Any:
    """True of what begins so: the words behind it are Pi's own."""
    return lambda seen: seen[: len(expected)] == expected


@probe(
    *(
        Claim(
            f"pi.handoff.{name}",
            case.says,
            assumes=starting_with(case.assumes),
            relied_on=("writers-pi-canary-real-adapter", "writers-pi-import-deletes-file", *case.relied_on),
            affects="every remote entry",
        )
        for name, case in CASES.items()
    ),
    seconds=5.0,
)
def handed_in(trial: Trial) -> Mapping[str, Any]:
    """All in one session: what the first request bore, whether the file is still there, and what is told."""
    doors = Doors({name: case.server for name, case in CASES.items()})
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        servers, files = {}, {}
        for name, case in CASES.items():
            url = f"{base}/{name}"
            servers[name] = {"url": url + case.suffix, **case.entry}
            where = case.url.format(url=url + case.suffix, base=url, capitals=url.replace("http", "HTTP", 1))
            entry = json.dumps({**credential(where, "TOKEN"), **case.handed}).replace("TOKEN", f"token-{name}")
            whole = {field: value for field, value in json.loads(entry).items() if value is not None}
            files[name] = hand_in(trial, name, case.text or whole)
        configure(trial, servers)
        run = session(trial, env={"WORD": "hello"})
    return {
        f"pi.handoff.{name}": [
            first_bore(doors, name),
            "there" if files[name].exists() else "gone",
            *(() if name == "other-url-refused" else (told_of(trial, run, name),)),
        ]
        for name in CASES
    }


def first_bore(doors: Doors, name: str) -> str | None:
    """What the first request at a door bore; None where nobody came."""
    visits = doors.visits.get(name, [])
    if not visits:
        return None
    return {None: "anonymous", f"token-{name}": "used"}.get(visits[0].token, "other")


@probe(
    Claim(
        "pi.handoff.directory",
        "MCP_OAUTH_DIR names the directory, else the setting `oauthDir` does; a blank one is as none",
        assumes={"variable": "variable", "blank": "setting", "none": "setting", "neither": "agent"},
        relied_on=("writers-pi-path", "writers-pi-path-fallback"),
        affects="every stored OAuth credential",
    ),
    Claim(
        "pi.handoff.agent-directory",
        "PI_CODING_AGENT_DIR moves the agent directory, and what is handed in with it",
        assumes="moved",
        relied_on=("writers-pi-path-fallback",),
        affects="every stored OAuth credential",
    ),
    Claim(
        "pi.handoff.tilde",
        "`~` means nothing in either: it is a directory of the session's",
        assumes={"tilde": "tilde", "tilde-setting": "tilde"},
        relied_on=("writers-pi-path",),
        affects="agent homes whose settings name a directory with `~`",
    ),
    seconds=11.0,
)
def handoff_directories(trial: Trial) -> Mapping[str, Any]:
    """A token of its own in each directory; which one is shown."""
    folders = {"variable": "~/variable", "setting": "setting", "agent": HANDOFF, "moved": "~/moved/mcp-oauth",
               "tilde": "./~/tilde", "home": "~/tilde"}  # fmt: skip
    runs: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
        "variable": ({"MCP_OAUTH_DIR": str(trial.home / "variable")}, {"oauthDir": "setting"}),
        "blank": ({"MCP_OAUTH_DIR": "  "}, {"oauthDir": "setting"}),
        "none": ({}, {"oauthDir": "setting"}),
        "neither": ({}, {}),
        "tilde": ({"MCP_OAUTH_DIR": "~/tilde"}, {}),
        "tilde-setting": ({}, {"oauthDir": "~/tilde"}),
        "moved": ({"PI_CODING_AGENT_DIR": str(trial.home / "moved")}, {}),
    }
    seen = {}
    for name, (environment, settings) in runs.items():
        doors = Doors()
        with trial.serving(doors=doors) as urls, trial.modelled():
            url = urls["doors"].replace("/mcp", "/one")
            for token, folder in folders.items():
                hand_in(trial, "one", credential(url, token), folder)
            configure(trial, {"one": {"url": url}}, **settings)
            configure(trial, {"one": {"url": url}}, "~/moved/mcp.json")
            trial.place("~/.pi/agent/mcp-cache.json").unlink(missing_ok=True)
            session(trial, env={**environment}, agent="~/moved" if name == "moved" else AGENT)
        seen[name] = doors.shown("one")
    moved = seen.pop("moved")
    tildes = {name: seen.pop(name) for name in ("tilde", "tilde-setting")}
    return {"pi.handoff.directory": seen, "pi.handoff.agent-directory": moved, "pi.handoff.tilde": tildes}
