"""How one authorization server says what its rules have decided: tokens, errors, pages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, TypeVar
from urllib.parse import urlencode

from fake_servers.oauth.answers import FORM, HTML, JSON, NO_STORE, json_response
from fake_servers.oauth.clients import Refused
from fake_servers.oauth.provider import Provider
from fake_servers.oauth.tokens import Generation
from harness.world.ports import Request, Response, header

STATUSES: Mapping[str, int] = {"invalid_client": 401}
USUAL_STATUS = 400
Word = TypeVar("Word")


def granted(provider: Provider, made: Generation, grant_type: str, request: Request) -> Response:
    """The answer to a grant (RFC 6749 section 5.1), in this server's shape."""
    tokens: dict[str, Any] = {"access_token": made.access, "token_type": provider.token_type}
    if made.expires_at is not None and provider.expires_in_as != "absent":
        seconds = round(made.expires_at - made.issued_at)
        tokens["expires_in"] = str(seconds) if provider.expires_in_as == "text" else seconds
    if made.refresh is not None:
        tokens["refresh_token"] = made.refresh
    if made.scope and provider.says_scope != "never":
        separated = provider.scope_separator.join(made.scope.split())
        tokens["scope"] = separated if provider.says_scope == "granted" else ""
    nest = provider.nests.get(grant_type)
    body = {nest: tokens} if nest else tokens
    return answered(provider, 200, {**provider.token_fields, **body}, request)


def refused(provider: Provider, problem: Refused, grant_type: str, request: Request,
            headers: Mapping[str, str] | None = None) -> Response:  # fmt: skip
    """The answer to a request that is refused (RFC 6749 section 5.2), in this server's shape."""
    code = own(provider.errors, problem.error, grant_type, problem.error)
    body: Mapping[str, Any] = {"error": code, "error_description": described(provider, problem, grant_type)}
    status = own(provider.statuses, problem.error, grant_type, STATUSES.get(problem.error, USUAL_STATUS))
    if provider.errors_as != "status":
        status = 200
    if provider.errors_as == "ok-false":
        body = {"ok": False, "error": code}
    body = own(provider.error_bodies, problem.error, grant_type, body)
    return answered(provider, status, body, request, headers)


def described(provider: Provider, problem: Refused, grant_type: str = "") -> str:
    """What is said of an error besides its code."""
    return own(provider.descriptions, problem.error, grant_type, problem.description)


def own(words: Mapping[str, Word], error: str, grant_type: str, usual: Word) -> Word:
    """This server's word for an error: for this grant type, else for all, else the usual one."""
    return words.get(f"{grant_type}.{error}", words.get(error, usual))


def answered(provider: Provider, status: int, body: Mapping[str, Any], request: Request,
             headers: Mapping[str, str] | None = None) -> Response:  # fmt: skip
    """An answer of the token endpoint, which some servers give as a form to whoever does not ask for JSON."""
    if provider.answers_as == "json" or accepts_json(request):
        return json_response(status, body, {**NO_STORE, **(headers or {})})
    return Response(status, {"Content-Type": FORM, **NO_STORE, **(headers or {})}, urlencode(body).encode())


def accepts_json(request: Request) -> bool:
    """Whether a request names JSON among what it accepts; who accepts anything has not named it."""
    kinds = (header(request.headers, "Accept") or "").split(",")
    return JSON in (kind.partition(";")[0].strip().lower() for kind in kinds)


def page(status: int, text: str) -> Response:
    """A page for a person."""
    body = f"<!DOCTYPE html><html><body><p>{escape(text)}</p></body></html>"
    return Response(status, {"Content-Type": HTML, **NO_STORE}, body.encode())
