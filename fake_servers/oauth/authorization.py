"""An authorization server of OAuth 2.1: metadata, registration, consent, tokens with rotation, revocation. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import count
from urllib.parse import urlencode, urlsplit

from fake_servers.oauth import codes, wording
from fake_servers.oauth.answers import BROKEN, FORM, NO_STORE, OK, Answer, Script, json_response
from fake_servers.oauth.asking import Asked, Received, read_document, read_form
from fake_servers.oauth.clients import (
    BASIC,
    Client,
    Refused,
    information,
    is_authentic,
    may_register,
    presented,
    registration,
)
from fake_servers.oauth.provider import ENDPOINTS, GRANTS, Provider, metadata, metadata_paths, require_known
from fake_servers.oauth.tokens import DIGITS, Generation, Ledger
from harness.world.ports import Request, Response
from harness.world.sites import origin

METADATA = "metadata"
METHODS: Mapping[str, tuple[str, ...]] = {
    METADATA: ("GET",), "authorize": ("GET", "POST"), "token": ("POST",), "register": ("POST",), "revoke": ("POST",)
}  # fmt: skip
HOP = "hop"
"""The parameter by which a server counts the redirects within itself."""
BAD_TOKEN = Refused("invalid_grant", "Invalid refresh token")
TWICE = Refused("invalid_request", "A parameter came twice")
GOOD = Provider()


class AuthorizationServer:
    """Answers for one issuer; `requests` holds all that arrived, `clients` who is registered, in order.

    `issuer` is a URL, or a path (also "") of whatever origin is asked. It may be replaced before the first request,
    as where it is served becomes known. `token_answers` are what the next requests to the token endpoint get: names
    of ANSWERS, or answers. Users consent at once. `name` tells its tokens from those of another server whose issuer
    is the same text.
    """

    def __init__(self, issuer: str = "", provider: Provider = GOOD, *, token_answers: Iterable[str | Answer] = (),
                 clients: Iterable[Client] = (), name: str = "") -> None:  # fmt: skip
        require_known(provider)
        self.issuer, self.provider = issuer, provider
        self.clients: dict[str, Client] = {client.client_id: client for client in clients}
        self.codes: dict[str, codes.Code] = {}
        self.requests: list[Received] = []
        self.now: float | None = None
        self._name = f"{name} {issuer}"
        self._ledger = Ledger(self._name)
        self._script = Script(tuple(METHODS))
        self.answer_next("token", *token_answers)

    @property
    def tokens(self) -> tuple[Generation, ...]:
        """All generations of tokens as they are now, in the order in which they came."""
        return tuple(self._ledger.generations)

    @property
    def token_count(self) -> int:
        """How many generations there are. What a text is to this server changes with it alone."""
        return len(self._ledger.generations)

    def received(self, endpoint: str) -> list[Received]:
        """The requests for one endpoint."""
        return [each for each in self.requests if each.endpoint == endpoint]

    def answer_next(self, endpoint: str, *answers: str | Answer) -> None:
        """Script what the next requests to an endpoint (or "metadata") get, behind what is scripted. ValueError."""
        self._script.add(endpoint, *answers)

    def answer_always(self, endpoint: str, answer: str | Answer) -> None:
        """Script what requests to an endpoint get from when `answer_next` is used up. Raises ValueError."""
        self._script.go_on(endpoint, answer)

    def breaks_next(self, method: str, url: str) -> str | None:
        """What a fault of the network is to do to this request if it is the next to be handled.

        The server itself knows whether a request whose answer is lost has had its effect, so it must see it.
        """
        endpoint = self._endpoint(urlsplit(url).path)
        drops = method in METHODS.get(endpoint, ()) and self._script.upcoming(endpoint).drops != "never"
        return "reset-after" if drops else None

    def issue(self, client_id: str, scope: str = "", expires_in: float | None = None, *, resource: str = "",
              now: float | None = None) -> tuple[str, str]:  # fmt: skip
        """Prepare a stored credential: an access and a refresh token of a client, which is registered if need be.

        `expires_in` counts from `now`, else from the last request; ValueError when there is neither. None: it lasts.
        """
        self.clients.setdefault(client_id, Client(client_id))
        now = self.now if now is None else now
        if now is None and expires_in is not None:
            raise ValueError("expires_in needs now: nothing was asked yet")
        clock = (now or 0.0) + self.provider.skew_seconds
        expires_at = None if expires_in is None else clock + expires_in
        made = self._ledger.found(client_id, scope, resource, clock, expires_at, refresh=True)
        return made.access, made.refresh or ""

    def revoke_access(self, token: str) -> None:
        """End one access token. Raises ValueError for what is none."""
        self._ledger.revoke_access(self._known(token))

    def revoke_family(self, token: str) -> None:
        """End all that came of the grant of a token. Raises ValueError for what is none."""
        self._ledger.revoke_family(self._known(token).family)

    def generation(self, token: str | None) -> Generation | None:
        """What gave an access or refresh token."""
        return self._ledger.find(token)

    def accepts(self, token: str, now: float) -> bool:
        """Whether it is an access token that is good at that time, by the clock of whoever asks."""
        return self._ledger.access_is_valid(token, now)

    def issuer_at(self, url: str) -> str:
        """The issuer for who asks at that URL."""
        return self.issuer if urlsplit(self.issuer).scheme else f"{origin(url)}{self.issuer}"

    def endpoint_url(self, endpoint: str, url: str = "") -> str:
        """Where an endpoint is; `url` is needed where the issuer is a path alone."""
        return f"{origin(self.issuer_at(url))}{self._paths()[endpoint]}"

    def serves(self, url: str) -> bool:
        """Whether a request to that URL is for this server."""
        return bool(self._endpoint(urlsplit(url).path))

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer to one request."""
        self.now = now
        endpoint = self._endpoint(urlsplit(request.url).path)
        fields, repeated = ({}, False) if endpoint == "register" else read_form(request)
        asked = Asked(request, fields, repeated, presented(request, fields), OK)
        token = self._ledger.find(fields.get("refresh_token") or fields.get("token"))
        before = len(self._ledger.generations)
        allowed = METHODS.get(endpoint, ())
        processed = False
        if request.method in allowed:
            asked = asked._replace(answer=self._script.take(endpoint))
            processed = asked.answer.follows_rules
            response = asked.answer.replaced(self._follow(endpoint, asked) if processed else BROKEN)
        else:
            response = Response(405, {"Allow": ", ".join(allowed)}) if endpoint else Response(404)
        issued = self._ledger.generations[before:]
        self.requests.append(
            Received(
                now, who, endpoint, request.method, request.url, dict(request.headers),
                (read_document(request) or {}) if endpoint == "register" else fields,
                fields.get("grant_type"), asked.who.client_id, asked.who.method, token and token.family,
                token and token.number, issued[0].number if issued else None, response.status, processed, asked.answer,
            )
        )  # fmt: skip
        return response

    def _follow(self, endpoint: str, asked: Asked) -> Response:
        if endpoint == METADATA:
            return self._metadata(asked.request.url)
        if endpoint == "register":
            return self._register(asked)
        if endpoint == "authorize":
            return self._authorize(asked)
        return self._answer_form(endpoint, asked)

    def _answer_form(self, endpoint: str, asked: Asked) -> Response:
        """The token and the revocation endpoint: a form from a client that says who it is."""
        if not asked.is_form:
            return self._refused(asked, Refused("invalid_request", f"Content-Type must be {FORM}"))
        client = self.clients.get(asked.who.client_id or "")
        if client is None or not is_authentic(client, asked.who):
            headers = {"WWW-Authenticate": 'Basic realm="token"'} if asked.who.method == BASIC else {}
            return self._refused(asked, Refused("invalid_client", "Client authentication failed"), headers)
        if asked.repeated:
            return self._refused(asked, TWICE)
        return self._revoke(client, asked) if endpoint == "revoke" else self._token(client, asked)

    def _metadata(self, url: str) -> Response:
        openid = metadata_paths(self.provider, self._path())[urlsplit(url).path]
        endpoints = {name: self.endpoint_url(name, url) for name in self._paths()}
        return json_response(200, metadata(self.provider, self.issuer_at(url), endpoints, openid=openid), {})

    def _register(self, asked: Asked) -> Response:
        document = read_document(asked.request)
        if not may_register(document, self.provider.registers_names):
            return Response(403, {"Content-Type": "text/plain"}, self.provider.registration_refused.encode())
        number = next(number for number in count(1) if f"client-{number}" not in self.clients)
        secret = self._secret(number)
        made = registration(document, self.provider.auth_methods, f"client-{number}", secret)
        if isinstance(made, Refused):
            return self._refused(asked, made)
        if self.provider.demands_secret:
            made = made._replace(secret=secret)
        self.clients[made.client_id] = made
        return json_response(201, information(made, self._clock))

    def _authorize(self, asked: Asked) -> Response:
        fields = asked.fields
        client = self.clients.get(fields.get("client_id", ""))
        problem = codes.untrusted(client, fields, self.provider)
        if problem is not None or client is None:
            return wording.page(400, problem or "")
        done = hops_done(fields)
        if done < self.provider.hops and not asked.repeated:
            return Response(302, {"Location": next_hop(asked.request.url, fields, done + 1), **NO_STORE})
        refused = TWICE if asked.repeated else codes.refusal(self.provider, fields)
        if refused is None and self.provider.consent == "login":
            return wording.page(200, "Log in to go on")
        answer = {"state": codes.told_state(self.provider, fields)}
        if self.provider.sends_issuer:
            answer["iss"] = self.issuer_at(asked.request.url)
        if refused is not None:
            code = wording.own(self.provider.errors, refused.error, "", refused.error)
            answer |= {"error": code, "error_description": wording.described(self.provider, refused)}
        else:
            answer["code"] = self._code(client, fields)
        return Response(302, {"Location": codes.redirected(fields["redirect_uri"], answer), **NO_STORE})

    def _code(self, client: Client, fields: Mapping[str, str]) -> str:
        number = 1 + len(self.codes)
        code = f"code-{number}-{hashlib.sha256(f'{self._name} code {number}'.encode()).hexdigest()[:DIGITS]}"
        expires_at = self._clock + self.provider.code_seconds
        self.codes[code] = codes.Code(
            client.client_id, fields["redirect_uri"], fields.get("code_challenge") or None,
            codes.granted_scope(self.provider, fields), fields.get("resource", ""), expires_at,
            may_refresh=codes.gets_refresh(self.provider, fields),
        )  # fmt: skip
        return code

    def _token(self, client: Client, asked: Asked) -> Response:
        grant_type = asked.fields.get("grant_type")
        if not grant_type:
            return self._refused(asked, Refused("invalid_request", "grant_type is missing"))
        if grant_type not in GRANTS:
            return self._refused(asked, Refused("unsupported_grant_type", f"Unknown grant_type {grant_type}"))
        if grant_type not in client.grant_types:
            return self._refused(asked, Refused("unauthorized_client", f"Not registered for {grant_type}"))
        problem = codes.parameter_problem(self.provider, asked.fields, grant_type)
        if problem is not None:
            return self._refused(asked, problem)
        made = self._redeemed(client, asked) if grant_type == "authorization_code" else self._refreshed(client, asked)
        if isinstance(made, Refused):
            return self._refused(asked, made)
        return wording.granted(self.provider, made, grant_type, asked.request)

    def _redeemed(self, client: Client, asked: Asked) -> Generation | Refused:
        """A code is good once; when it comes again, what was given for it ends (RFC 6749 section 4.1.2)."""
        given = asked.fields.get("code", "")
        code = self.codes.get(given)
        if code is None:
            return Refused("invalid_grant", "Invalid code")
        if code.family is not None:
            self._ledger.revoke_family(code.family)
            return Refused("invalid_grant", "The code was used before")
        problem = codes.mismatch(code, asked.fields, client.client_id, self._clock)
        if problem is not None:
            return problem
        refresh = "refresh_token" in client.grant_types and "refresh_token" not in asked.answer.omits
        made = self._ledger.found(client.client_id, code.scope, code.resource, self._clock,
                                  self._expiry(asked.answer), refresh=refresh and code.may_refresh)  # fmt: skip
        self.codes[given] = code._replace(family=made.family)
        return made

    def _refreshed(self, client: Client, asked: Asked) -> Generation | Refused:
        """A refresh token is good once where it rotates; when it comes again, the family ends or does not."""
        token, now = asked.fields.get("refresh_token"), self._clock
        if not token:
            return Refused("invalid_request", "refresh_token is missing")
        parent = self._ledger.find(token)
        if parent is None or parent.refresh != token or parent.client_id != client.client_id or parent.refresh_revoked:
            return BAD_TOKEN
        if parent.spent_at is not None and now >= parent.spent_at + self.provider.grace_seconds:
            if self.provider.reuse == "revokes-family":
                self._ledger.revoke_family(parent.family)
            return BAD_TOKEN
        scope = codes.split_scope(self.provider, asked.fields.get("scope", "")) or parent.scope
        if codes.unknown_scope(scope, tuple(parent.scope.split())) is not None:
            return Refused("invalid_scope", "The scope is wider than what was granted")
        if parent.resource and asked.fields.get("resource", parent.resource) != parent.resource:
            return Refused("invalid_target", "resource differs from that of the grant")
        if self.provider.rotation_revokes_access:
            self._ledger.revoke_family(parent.family, access_alone=True)
            parent = self._known(token)
        rotates = self.provider.rotates and "refresh_token" not in asked.answer.omits
        return self._ledger.succeed(parent, scope, now, self._expiry(asked.answer), rotates=rotates)

    def _revoke(self, client: Client, asked: Asked) -> Response:
        """RFC 7009: what is unknown, or somebody else's, is none of the client's concern."""
        token = asked.fields.get("token")
        if not token:
            return self._refused(asked, Refused("invalid_request", "token is missing"))
        found = self._ledger.find(token)
        if found is not None and found.client_id == client.client_id:
            if found.refresh == token:
                self._ledger.revoke_family(found.family)
            else:
                self._ledger.revoke_access(found)
        return Response(200, NO_STORE)

    def _refused(self, asked: Asked, problem: Refused, headers: Mapping[str, str] | None = None) -> Response:
        return wording.refused(self.provider, problem, asked.fields.get("grant_type", ""), asked.request, headers)

    def _expiry(self, answer: Answer) -> float | None:
        seconds = None if "expires_in" in answer.omits else self.provider.access_seconds
        return None if seconds is None else self._clock + seconds

    @property
    def _clock(self) -> float:
        """The time by this server's own clock."""
        return (self.now or 0.0) + self.provider.skew_seconds

    def _known(self, token: str) -> Generation:
        found = self._ledger.find(token)
        if found is None:
            raise ValueError("no token of this server")
        return found

    def _secret(self, number: int) -> str:
        return f"secret-{number}-{hashlib.sha256(f'{self._name} secret {number}'.encode()).hexdigest()[:DIGITS]}"

    def _path(self) -> str:
        return urlsplit(self.issuer).path.rstrip("/")

    def _paths(self) -> Mapping[str, str]:
        """The paths of the endpoints that are there."""
        usual = {name: f"{self._path()}/{name}" for name in ENDPOINTS if name not in self.provider.absent}
        return {name: self.provider.paths.get(name, path) for name, path in usual.items()}

    def _endpoint(self, path: str) -> str:
        if path in metadata_paths(self.provider, self._path()):
            return METADATA
        return next((name for name, place in self._paths().items() if place == path), "")


def next_hop(url: str, fields: Mapping[str, str], number: int) -> str:
    """The same request once more, counted."""
    return urlsplit(url)._replace(query=urlencode({**fields, HOP: str(number)})).geturl()


def hops_done(fields: Mapping[str, str]) -> int:
    """How many redirects within the server a request has come through."""
    text = fields.get(HOP, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
