"""What an endpoint answers in place of, or a little beside, what the rules say: scripted, one request each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.world.ports import Response

JSON = "application/json"
HTML = "text/html; charset=utf-8"
NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store", "Pragma": "no-cache"}
PAGE = "<!DOCTYPE html><html><body><h1>Something went wrong</h1></body></html>"
BROKEN = Response(0)
"""No answer: whoever carries answers breaks the connection, as for any status below 200."""
DROPS = ("never", "before", "after")


class Answer(NamedTuple):
    """One scripted answer. With neither `status` nor `drops` the rules decide, and `omits` leaves fields out of what is
    granted (and what they stand for: no refresh token, an access token that lasts).

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

    @property
    def follows_rules(self) -> bool:
        """Whether the request has its effect."""
        return (self.status is None and self.drops != "before") or self.processed

    def replaced(self, response: Response) -> Response:
        """What is sent in place of that."""
        if self.drops != "never":
            return BROKEN._replace(after_seconds=self.after_seconds)
        if self.status is None:
            return response._replace(after_seconds=self.after_seconds)
        headers = {"Content-Type": self.content_type, **self.headers}
        return Response(self.status, headers, self.body.encode(), self.after_seconds)


def error_body(error: str, description: str) -> str:
    """The error of RFC 6749 section 5.2."""
    return json.dumps({"error": error, "error_description": description})


OK = Answer()
ANSWERS: Mapping[str, Answer] = {
    "ok": OK,
    "ok-without-refresh": Answer(omits=("refresh_token",)),
    "ok-without-expiry": Answer(omits=("expires_in",)),
    "invalid_grant": Answer(400, error_body("invalid_grant", "Invalid refresh token")),
    "invalid_client": Answer(401, error_body("invalid_client", "Unknown client")),
    "unauthorized_client": Answer(400, error_body("unauthorized_client", "refresh_token is invalid")),
    "invalid_request": Answer(400, error_body("invalid_request", "Malformed request")),
    "429": Answer(429, error_body("rate_limited", "Too many requests"), headers={"Retry-After": "30"}),
    "500-html": Answer(500, PAGE, HTML),
    "503-html": Answer(503, PAGE, HTML),
    "400-html": Answer(400, PAGE, HTML),
    "400-json": Answer(400, '{"message": "Bad Request"}'),
    "200-error": Answer(200, error_body("invalid_grant", "Invalid refresh token")),
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


def json_response(status: int, body: Mapping[str, Any], headers: Mapping[str, str] = NO_STORE) -> Response:
    """A JSON object under a status."""
    return Response(status, {"Content-Type": JSON, **headers}, json.dumps(body).encode())
