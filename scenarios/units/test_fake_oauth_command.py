"""The program `mcp-fake-oauth` as a process: what it is told, what it says, how it ends."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

import fake_servers
from fake_servers.oauth.command import serve
from harness.world import World
from scenarios.units.fake_oauth_run import BOTH, CALLBACK, CHALLENGE, VERIFIER
from scenarios.worlds import ran

PROGRAM = Path(fake_servers.__file__).parent / "bin" / "mcp-fake-oauth"
LIMIT_SECONDS = 20.0
OAUTH = "/.well-known/oauth-authorization-server"


def ended(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-IS", str(PROGRAM), *words]
    return subprocess.run(command, env={}, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """The program in a clean environment with what it told, ended whatever happens."""
    command = [sys.executable, "-IS", str(PROGRAM), *words]
    process = subprocess.Popen(command, env={}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield process, json.loads(process.stdout.readline() or process.stderr.read())
    finally:
        process.terminate()  # so that it takes its folder with it
        try:
            process.communicate(timeout=LIMIT_SECONDS)
        finally:
            process.kill()


def asking(told: Any) -> httpx.Client:
    context: ssl.SSLContext | bool = False
    if told["ca"] is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(told["ca"])
    return httpx.Client(verify=context, trust_env=False, timeout=LIMIT_SECONDS)


def challenged(client: httpx.Client, told: Any) -> Any:
    """The metadata of the resource, which the challenge names."""
    refused = client.post(told["mcp"], json={})
    assert refused.status_code == 401
    place = refused.headers["WWW-Authenticate"].partition('resource_metadata="')[2].partition('"')[0]
    return client.get(place).json()


# Profile, whether its two servers are at one origin.
SERVED = [("well-behaved", True), ("separate-host", False)]


@pytest.mark.parametrize(("profile", "one"), SERVED)
def test_a_client_that_trusts_the_certificate_goes_all_the_way(profile, one):
    with started("--profile", profile) as (process, told), asking(told) as client:
        assert told["profile"] == profile
        assert (urlsplit(told["issuer"]).netloc == urlsplit(told["mcp"]).netloc) == one
        resource = challenged(client, told)
        assert (resource["resource"], resource["authorization_servers"]) == (told["mcp"], [told["issuer"]])
        found = client.get(f"{told['issuer']}{OAUTH}").json()
        assert all(value.startswith("https://") for key, value in found.items() if key.endswith("_endpoint"))
        registration = {"redirect_uris": [CALLBACK], "grant_types": BOTH, "token_endpoint_auth_method": "none"}
        client_id = client.post(found["registration_endpoint"], json=registration).json()["client_id"]
        query = {"response_type": "code", "client_id": client_id, "redirect_uri": CALLBACK, "state": "x",
                 "code_challenge": CHALLENGE, "code_challenge_method": "S256", "resource": told["mcp"]}  # fmt: skip
        sent = client.get(found["authorization_endpoint"], params=query)
        code = parse_qs(urlsplit(sent.headers["Location"]).query)["code"][0]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "client_id": client_id,
                "code_verifier": VERIFIER, "resource": told["mcp"]}  # fmt: skip
        access = client.post(found["token_endpoint"], data=form).json()["access_token"]
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
        answer = client.post(told["mcp"], json=hello, headers={"Authorization": f"Bearer {access}"})
        assert answer.json()["result"]["serverInfo"]["name"] == "server"
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_SECONDS) == 0
        assert not Path(told["ca"]).exists()


def test_nobody_is_trusted_without_the_certificate():
    refused = pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED")
    with started() as (_, told), httpx.Client(trust_env=False, timeout=LIMIT_SECONDS) as client, refused:
        client.get(f"{told['issuer']}{OAUTH}")


def test_a_provider_is_chosen_and_its_answers_are_scripted(tmp_path):
    words = ("--profile=slack", "--http", "--answers", "token=429,503-html", "metadata=404", "--ca", str(tmp_path))
    with started(*words) as (_, told), asking(told) as client:
        assert (told["ca"], told["clients"]) == (None, ["1601185624273.8899143856786"])
        statuses = [client.get(f"{told['issuer']}{OAUTH}").status_code for _ in range(2)]
        assert statuses == [404, 200]
        found = client.get(f"{told['issuer']}{OAUTH}").json()
        assert found["token_endpoint"] == f"{told['issuer']}/api/oauth.v2.user.access"
        form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": told["clients"][0]}
        answers = [client.post(found["token_endpoint"], data=form) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [429, 503, 200]
        assert answers[2].json() == {"ok": False, "error": "invalid_refresh_token"}
    assert list(tmp_path.iterdir()) == []


def test_a_certificate_may_be_kept(tmp_path):
    with started("--ca", str(tmp_path)) as (process, told):
        assert told["ca"] == str(tmp_path / "ca.pem")
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_SECONDS) == 0
    assert (tmp_path / "ca.pem").read_text().startswith("-----BEGIN CERTIFICATE-----")


def test_a_port_is_the_authorization_servers_and_one_that_is_taken_is_refused():
    with started("--profile", "separate-host") as (_, told):
        port = urlsplit(told["issuer"]).port
        run = ended("--port", str(port))
    assert (run.returncode, run.stdout, run.stderr) == (
        2, "", f"mcp-fake-oauth: port {port}: Address already in use\n",
    )  # fmt: skip


MISUSES = [
    (("--nope",), "what is --nope? See --help"),
    (("extra",), "what is extra? See --help"),
    (("--profile",), "--profile needs a value"),
    (("--profile", "nobody"), "--profile: no provider is called 'nobody'; there are atlassian"),
    (("--port", "x"), "--port needs a port from 0 to 65535, not 'x'"),
    (("--port", "65536"), "--port needs a port"),
    (("--answers", "token=teapot"), "--answers: no answer is called 'teapot'"),
    (("--answers", "jwks=ok"), "--answers: an endpoint is one of metadata"),
    (("--answers", "token"), "--answers: no answer is called ''"),
    (("--answers", "token=ok", "--http", "metadata=ok"), "what is metadata=ok? See --help"),
    (("--ca", "/nowhere"), "/nowhere/ca.pem: No such file or directory"),
]


@pytest.mark.parametrize(("words", "text"), MISUSES)
def test_what_cannot_be_used_is_one_line_and_exit_code_2(words, text):
    async def body(world: World) -> int:
        return await serve(world, ["mcp-fake-oauth", *words])

    run = ran(bodies={"server": body})
    assert run.results["server"] == 2
    [line] = run.actors["server"].stderr.lines
    assert line.startswith(f"mcp-fake-oauth: {text}")


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_names_every_provider_and_answer(word):
    run = ended(word)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("usage: mcp-fake-oauth ")
    assert all(name in run.stdout for name in ("notion", "slack-with-bot", "drop-after", "metadata, authorize, token"))
