"""One who asks a provider by hand, step by step, and holds what was answered: for tests of the fake providers."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from fake_servers.oauth import Profile, profile_named
from fake_servers.oauth.answers import parsed
from harness.world import Request, Response, header
from harness.world.sites import origin

FORM = "application/x-www-form-urlencoded"
CALLBACK = "https://zimmer.test/mcp_oauth/callback"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
NOW = 1_700_000_000.0
BOTH = ["authorization_code", "refresh_token"]


class Got(NamedTuple):
    """An answer: its status, its JSON or its form (None when it is neither), its headers, its text."""

    status: int
    body: Any
    headers: Mapping[str, str]
    text: str


def got(response: Response) -> Got:
    """An answer as a client reads it."""
    kind, text = header(response.headers, "Content-Type") or "", response.body.decode()
    body: Any = None
    if kind == FORM:
        body = dict(parse_qsl(text))
    elif kind == "application/json":
        body = parsed(response.body)
    return Got(response.status, body, response.headers, text)


class Asker:
    """Asks the servers of one profile. `client` are the fields by which it says who it is."""

    def __init__(self, profile: str | Profile, **client: str) -> None:
        chosen = profile_named(profile) if isinstance(profile, str) else profile
        self.profile = chosen
        self.stage = chosen.stage()
        self.server, self.protected = self.stage.authorization, self.stage.protected
        first = chosen.clients[0] if chosen.clients else None
        known = {"client_id": first.client_id, "client_secret": first.secret or ""} if first is not None else {}
        self.client: dict[str, str] = client or {key: value for key, value in known.items() if value}
        self.is_basic = False
        self.callback = first.redirect_uris[0] if first is not None and first.redirect_uris else CALLBACK

    def fetched(self, url: str, now: float = NOW, method: str = "GET", **headers: str) -> Got:
        """What a server of this profile answers."""
        return got(self.stage.servers[origin(url)].handle(Request(method, url, headers), now, "client"))

    def metadata(self, path: str = "/.well-known/oauth-authorization-server") -> Any:
        """What the authorization server says of itself."""
        return self.fetched(f"{origin(self.profile.issuer)}{path}").body

    @property
    def can_register(self) -> bool:
        """Whether there is anywhere to register."""
        return "register" not in self.profile.provider.absent

    def registered(self, **wanted: Any) -> Got:
        """Register, and be that client from now on."""
        document = {"redirect_uris": [self.callback], "grant_types": BOTH, "client_name": "Zimmer",
                    "token_endpoint_auth_method": "none", **wanted}  # fmt: skip
        url = self.server.endpoint_url("register")
        answer = got(self.server.handle(Request("POST", url, {}, json.dumps(document).encode()), NOW, "client"))
        if answer.status == 201:
            self.client = {key: answer.body[key] for key in ("client_id", "client_secret") if key in answer.body}
            self.is_basic = answer.body["token_endpoint_auth_method"] == "client_secret_basic"
        return answer

    def consented(self, now: float = NOW, /, **fields: str) -> Got:
        """Ask for consent; a field that is empty is left out."""
        asked = {"response_type": "code", "client_id": self.client["client_id"], "redirect_uri": self.callback,
                 "state": "s-1", "code_challenge": CHALLENGE, "code_challenge_method": "S256", **fields}  # fmt: skip
        query = urlencode({key: value for key, value in asked.items() if value})
        return self.fetched(f"{self.server.endpoint_url('authorize')}?{query}", now)

    def sent_back(self, now: float = NOW, /, **fields: str) -> dict[str, str]:
        """What the redirect of an authorization request brings."""
        answer = self.consented(now, **fields)
        assert answer.status == 302, answer
        assert answer.headers["Location"].startswith(self.callback)
        return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))

    def redeemed(self, code: str, now: float = NOW, accept: str = "application/json", /, **fields: str) -> Got:
        """Exchange a code."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.callback,
                "code_verifier": VERIFIER, **self.client, **fields}  # fmt: skip
        return self.posted(form, now, accept)

    def refreshed(self, token: str, now: float = NOW, accept: str = "application/json", /, **fields: str) -> Got:
        """Refresh."""
        return self.posted(
            {"grant_type": "refresh_token", "refresh_token": token, **self.client, **fields}, now, accept
        )

    def posted(self, form: Mapping[str, str], now: float = NOW, accept: str = "application/json") -> Got:
        """Post a form to the token endpoint; the secret goes where the client has agreed to say it."""
        headers = {"Content-Type": FORM, **({"Accept": accept} if accept else {})}
        if self.is_basic:
            pair = f"{form['client_id']}:{form['client_secret']}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
            form = {key: value for key, value in form.items() if key != "client_secret"}
        url = self.server.endpoint_url("token")
        return got(self.server.handle(Request("POST", url, headers, urlencode(form).encode()), now, "client"))

    def tokens(self, now: float = NOW, /, **fields: str) -> Any:
        """The whole way: a client (registered where none is given), consent, the code's exchange; the body."""
        if not self.client:
            assert self.registered().status == 201
        resource = {"resource": fields["resource"]} if fields.get("resource") else {}
        return self.redeemed(self.sent_back(now, **fields)["code"], now, **resource).body

    def called(self, token: str | None, now: float = NOW) -> Got:
        """Say hello to what is protected."""
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        request = Request("POST", self.protected.resource.url, headers, json.dumps(body).encode())
        return got(self.protected.handle(request, now, "client"))


def shaped(profile: str = "exa", **fields: Any) -> Asker:
    """One who asks a profile whose authorization server differs in these fields."""
    base = profile_named(profile)
    return Asker(base._replace(provider=base.provider._replace(**fields)))
