"""The suite's scenarios for authorization servers: every well-behaved provider, and some that must fail somewhere."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from fake_servers.mounts import Mount
from fake_servers.oauth import AuthorizationServer, Client, Profile, profile_named
from fake_servers.oauth.profiles import good_names
from harness.world.sites import origin
from scenarios.certification.official import running
from scenarios.certification.official.installing import Suite
from scenarios.certification.official.running import RESULT_NAME, Played, Processes

BASELINE = Path(__file__).with_name("providers.toml")
SCENARIOS = ("authorization-server-metadata-endpoint", "authorization-code-grant")
ORIGIN = "http://127.0.0.1:0"
CLIENT_ID, SECRET = "suite", "suite-secret"
CALLBACK = "http://127.0.0.1:{port}/callback"
READY = "Callback server started"
BAD = ("FAILURE",)
PATIENCE_SECONDS = 20.0


class Subject(NamedTuple):
    """A provider, and the one that it is like, but for one quirk."""

    name: str
    profile: Profile
    like: str = ""


def quirk(name: str, base: str, **fields: Any) -> Subject:
    """A good provider with one thing wrong."""
    profile = profile_named(base)
    return Subject(name, profile._replace(provider=profile.provider._replace(**fields)), base)


CERTIFIED = tuple(Subject(name, profile_named(name)) for name in good_names())
QUIRKS = (
    quirk("slash-behind-issuer", "well-behaved", issuer_ending="/"),
    quirk("forms", "well-behaved", answers_as="form-unless-asked"),
    quirk("nested-tokens", "well-behaved", nests={"authorization_code": "authed_user"}),
    quirk("state-altered", "well-behaved", state="altered"),
)


class Browser:
    """Reads what the suite prints, and goes where it sends a user, as soon as it waits for one."""

    def __init__(self) -> None:
        self._url = ""

    def hear(self, line: str) -> None:
        """A line of the suite's output."""
        text = line.strip()
        if urlsplit(text).scheme in ("http", "https") and "client_id=" in text:
            self._url = text
        if READY in text and self._url:
            with httpx.Client(trust_env=False, follow_redirects=True, timeout=PATIENCE_SECONDS) as client:
                client.get(self._url)


def play(processes: Processes, suite: Suite, subject: Subject) -> tuple[Played, ...]:
    """Run the scenarios against a provider over plain HTTP, with a client that it knows.

    They are one process: the second begins with what the first has found.
    """
    port = free_port()
    authorization = server_of(subject.profile, port)
    with tempfile.TemporaryDirectory() as name, Mount({ORIGIN: authorization}) as mount:
        folder = Path(name)
        issuer = f"{mount.url(ORIGIN)}{urlsplit(subject.profile.issuer).path}"
        options = ["--url", issuer, "-p", str(port), "-o", str(folder / "results"), "--client-id", CLIENT_ID]
        options += ["--resource", subject.profile.resource.url]
        if authorization.clients[CLIENT_ID].secret is not None:
            options += ["--client-secret", SECRET]
        argv = [str(suite.node), str(suite.program), "authorization", *options]
        code, output = processes.run(argv, folder, heard=Browser().hear)
        results = {
            path.parent.name: path.read_text(encoding="utf-8") for path in (folder / "results").rglob(RESULT_NAME)
        }
    return judged(code, results, output)


def judged(code: int | None, results: Mapping[str, str], output: str) -> tuple[Played, ...]:
    """What a run shows, by scenario. `results` are the files that it left, by the names of their folders."""
    said = " ".join(output.split())[-200:]
    if code is None:
        return (Played(SCENARIOS[0], (), f"did not end within {running.LIMIT_SECONDS:g} s: {said}"),)
    played: list[Played] = []
    for scenario in SCENARIOS:
        texts = [text for folder, text in results.items() if scenario in folder]
        checks = tuple(running.read_checks(scenario, texts[0])) if len(texts) == 1 else ()
        problem = None if checks else f"left {len(texts)} results and exit code {code}: {said}"
        played.append(Played(scenario, checks, problem))
    failed = any(check.status in BAD for each in played for check in each.checks)
    if code != int(failed) and all(each.problem is None for each in played):
        told = f"exit code {code} although its checks say {'failed' if failed else 'passed'}"
        played[0] = played[0]._replace(problem=told)
    return tuple(played)


def server_of(profile: Profile, port: int) -> AuthorizationServer:
    """The provider's authorization server at whatever origin it is asked, and the suite's client registered there."""
    authorization = profile.moved("", origin(profile.resource.url)).stage().authorization
    method = profile.provider.auth_methods[0]
    secret = None if method == "none" else SECRET
    authorization.clients[CLIENT_ID] = Client(CLIENT_ID, secret, (CALLBACK.format(port=port),), method)
    return authorization


def free_port() -> int:
    """A port at which nobody listens now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
