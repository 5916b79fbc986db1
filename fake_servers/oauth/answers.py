"""What an endpoint answers in place of, or a little beside, what the rules say: scripted, one request each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from harness.world.ports import Response, header

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
HTML = "text/html; charset=utf-8"
NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store", "Pragma": "no-cache"}
PAGE = "<!DOCTYPE html><html><body><h1>Something went wrong</h1></body></html>"
BROKEN = Response(0)
"""No answer: whoever carries answers breaks the connection, as for any status below 200."""
REFUSALS = 400
"""Statuses from here on refuse; what they say is left as it is."""
DROPS = ("never", "before", "after")


class Answer(NamedTuple):
    """One scripted answer. With neither `status` nor `drops` the rules decide, and `omits` leaves fields out of what is
    granted (and what they stand for: no refresh token, an access token that lasts).

    What the rules have decided is sent a little changed: `says` replaces fields of the body, None takes one away, with
    the status `as_status`, and `cuts` sends the first half of the body. None of these changes what is true.
    A `status` stands in for the rules; with `processed` the rules have had their effect before. `drops` breaks the
    connection: before the request has any effect, or after it had all of it. `after_seconds` is how long it takes.
    """

    status: int | None = None
    body: str = ""
    content_type: str = JSON
    headers: Mapping[str, str] = {}
    processed: bool = False
    omits: tuple[str, ...] = ()
    drops: str = "never"
    after_seconds: float = 0.0
    says: Mapping[str, Any] = {}
    as_status: int | None = None
    cuts: bool = False

    @property
    def follows_rules(self) -> bool:
        """Whether the request has its effect."""
        return (self.status is None and self.drops != "before") or self.processed

    def replaced(self, response: Response) -> Response:
        """What is sent in place of that."""
        if self.drops != "never":
            return BROKEN._replace(after_seconds=self.after_seconds)
        if self.status is None:
            return self._changed(response)._replace(after_seconds=self.after_seconds)
        headers = {"Content-Type": self.content_type, **self.headers}
        return Response(self.status, headers, self.body.encode(), self.after_seconds)

    def _changed(self, response: Response) -> Response:
        body = saying(response, self.says) if self.says and response.status < REFUSALS else response.body
        body = body[: len(body) // 2] if self.cuts else body
        headers = {**response.headers, **self.headers}
        return response._replace(status=self.as_status or response.status, headers=headers, body=body)


def saying(response: Response, says: Mapping[str, Any]) -> bytes:
    """The body of an answer, JSON or a form, with fields replaced; None takes one away.

    Where the tokens are in an object within the answer, it is that one's fields.
    """
    form = header(response.headers, "Content-Type") == FORM
    fields: Any = dict(parse_qsl(response.body.decode())) if form else parsed(response.body)
    if not isinstance(fields, dict):
        return response.body
    inner = next((key for key, value in fields.items() if isinstance(value, dict) and "access_token" in value), None)
    changed = merged(fields, says) if inner is None else {**fields, inner: merged(fields[inner], says)}
    return (urlencode(changed) if form else json.dumps(changed)).encode()


def merged(fields: Mapping[str, Any], says: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with others in their place; None takes one away."""
    return {key: value for key, value in {**fields, **says}.items() if value is not None}


def parsed(body: bytes) -> Any:
    """The value of a JSON text; None for what is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def error_body(error: str, description: str) -> str:
    """The error of RFC 6749 section 5.2."""
    return json.dumps({"error": error, "error_description": description})


OK = Answer()
SLOW_SECONDS = 40.0
"""Longer than the 30 seconds that clients of this field wait."""
ELSEWHERE = "https://elsewhere.test/"
HUGE_SECONDS = 10**18
MESSAGES: Mapping[int, str] = {
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 408: "Request Timeout",
    422: "Unprocessable Entity", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout",
}  # fmt: skip


def message(status: int) -> Answer:
    """A status with a JSON body that is no error of OAuth."""
    return Answer(status, json.dumps({"message": MESSAGES[status]}))


ANSWERS: Mapping[str, Answer] = {
    "ok": OK,
    "ok-without-refresh": Answer(omits=("refresh_token",)),
    "ok-without-expiry": Answer(omits=("expires_in",)),
    "ok-slow": Answer(after_seconds=SLOW_SECONDS),
    "ok-truncated": Answer(cuts=True),
    "ok-created": Answer(as_status=201),
    "ok-as-503": Answer(as_status=503),
    "ok-as-302": Answer(as_status=302, headers={"Location": ELSEWHERE}),
    "ok-expires-text": Answer(says={"expires_in": "3600"}),
    "ok-expires-zero": Answer(says={"expires_in": 0}),
    "ok-expires-negative": Answer(says={"expires_in": -60}),
    "ok-expires-huge": Answer(says={"expires_in": HUGE_SECONDS}),
    "ok-expires-fraction": Answer(says={"expires_in": 3599.5}),
    "ok-expires-unsaid": Answer(says={"expires_in": None}),
    "ok-expires-nan": Answer(says={"expires_in": "NaN"}),
    "ok-expires-words": Answer(says={"expires_in": "one hour"}),
    "ok-expires-true": Answer(says={"expires_in": True}),
    "ok-type-lower": Answer(says={"token_type": "bearer"}),
    "ok-type-mac": Answer(says={"token_type": "mac"}),
    "ok-type-absent": Answer(says={"token_type": None}),
    "ok-access-blank": Answer(says={"access_token": ""}),
    "ok-access-absent": Answer(says={"access_token": None}),
    "ok-refresh-blank": Answer(says={"refresh_token": ""}),
    "wrong-issuer": Answer(says={"issuer": ELSEWHERE}),
    "token-endpoint-http": Answer(says={"token_endpoint": "http://elsewhere.test/token"}),
    "registration-endpoint-http": Answer(says={"registration_endpoint": "http://elsewhere.test/register"}),
    "invalid_grant": Answer(400, error_body("invalid_grant", "Invalid refresh token")),
    "invalid_client": Answer(401, error_body("invalid_client", "Unknown client")),
    "unauthorized_client": Answer(400, error_body("unauthorized_client", "refresh_token is invalid")),
    "invalid_request": Answer(400, error_body("invalid_request", "Malformed request")),
    "temporarily_unavailable": Answer(400, error_body("temporarily_unavailable", "Try again later")),
    "429": Answer(429, error_body("rate_limited", "Too many requests"), headers={"Retry-After": "30"}),
    "429-date": Answer(429, PAGE, HTML, {"Retry-After": "Fri, 31 Dec 2027 23:59:59 GMT"}),
    "429-invalid_grant": Answer(429, error_body("invalid_grant", "Slow down"), headers={"Retry-After": "30"}),
    "503-invalid_grant": Answer(503, error_body("invalid_grant", "Down for maintenance")),
    **{str(status): message(status) for status in MESSAGES},
    **{f"{status}-html": Answer(status, PAGE, HTML) for status in MESSAGES},
    "400-json": message(400),
    "422-client": Answer(422, '{"message": "Unrecognized client_id"}'),
    "200-error": Answer(200, error_body("invalid_grant", "Invalid refresh token")),
    "200-html": Answer(200, PAGE, HTML),
    "200-empty": Answer(200),
    "200-list": Answer(200, "[]"),
    "200-deep": Answer(200, "[" * 100_000),
    "204": Answer(204),
    "302": Answer(302, "", "text/plain", {"Location": ELSEWHERE}),
    "307": Answer(307, "", "text/plain", {"Location": ELSEWHERE}),
    "drop-before": Answer(drops="before"),
    "drop-after": Answer(drops="after"),
}
"""Answers by name. A refusal among them is a word only: whatever was presented stays as good as it was."""


def answer_of(given: str | Answer) -> Answer:
    """An answer by its name, or itself. Raises ValueError."""
    if isinstance(given, Answer):
        if given.drops not in DROPS:
            raise ValueError(f"drops must be one of {', '.join(DROPS)}, not {given.drops!r}")
        return given
    if given not in ANSWERS:
        raise ValueError(f"no answer is called {given!r}; there are {', '.join(ANSWERS)}")
    return ANSWERS[given]


class Script:
    """What the next requests for each of some endpoints get: first what was added, then what goes on, else OK."""

    def __init__(self, endpoints: tuple[str, ...]) -> None:
        self._endpoints = endpoints
        self._next: dict[str, list[Answer]] = {}
        self._otherwise: dict[str, Answer] = {}

    def add(self, endpoint: str, *answers: str | Answer) -> None:
        """Behind what is there, an answer for one request each. Raises ValueError."""
        self._require(endpoint)
        self._next.setdefault(endpoint, []).extend(answer_of(each) for each in answers)

    def go_on(self, endpoint: str, answer: str | Answer) -> None:
        """What comes when all is used up. Raises ValueError."""
        self._require(endpoint)
        self._otherwise[endpoint] = answer_of(answer)

    def upcoming(self, endpoint: str) -> Answer:
        """What the next request gets."""
        waiting = self._next.get(endpoint)
        return waiting[0] if waiting else self._otherwise.get(endpoint, OK)

    def take(self, endpoint: str) -> Answer:
        """The same, and it is used up."""
        answer = self.upcoming(endpoint)
        if self._next.get(endpoint):
            del self._next[endpoint][0]
        return answer

    def _require(self, endpoint: str) -> None:
        if endpoint not in self._endpoints:
            raise ValueError(f"an endpoint is one of {', '.join(self._endpoints)}, not {endpoint!r}")


def json_response(status: int, body: Mapping[str, Any], headers: Mapping[str, str] = NO_STORE) -> Response:
    """A JSON object under a status."""
    return Response(status, {"Content-Type": JSON, **headers}, json.dumps(body).encode())
