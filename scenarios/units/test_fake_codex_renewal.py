"""What the fake Codex takes for new tokens, and in which words it tells of an answer that is none."""

from __future__ import annotations

import pytest

from fake_runtimes.codex.renewal import Refused, following, granted_by
from harness.world import Response
from scenarios.sign_in import as_json

WHOLE = {"access_token": "a", "token_type": "bearer"}
NOT_READ = "Failed to parse server response"


@pytest.mark.parametrize(
    ("members", "fits"),
    [
        ({}, True),
        ({"refresh_token": None, "scope": None, "expires_in": None}, True),
        ({"refresh_token": "r", "scope": "x y", "expires_in": 0}, True),
        ({"access_token": None}, False),
        ({"token_type": None}, False),
        ({"token_type": 1}, False),
        ({"refresh_token": 1}, False),
        ({"scope": ["x"]}, False),
        ({"expires_in": "3600"}, False),
        ({"expires_in": 3600.5}, False),
        ({"expires_in": -1}, False),
        ({"expires_in": True}, False),
    ],
)
def test_new_tokens_are_those_whose_members_are_each_of_their_kind(members, fits):
    told = {**WHOLE, **members}
    assert granted_by(as_json(told)) == (told if fits else Refused("", NOT_READ))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Response(200), "Other error: server returned empty response body"),
        (
            Response(200, {"Content-Type": "text/html; charset=utf-8"}, b"<p>"),
            'Other error: unexpected response Content-Type: "text/html; charset=utf-8", should be `application/json`',
        ),
        (Response(200, {"Content-Type": "application/json; charset=utf-8"}, b'{"access_'), NOT_READ),
        (Response(200, {}, b"[]"), NOT_READ),
        (as_json(WHOLE, 201), NOT_READ),
        (Response(400, {"Content-Type": "text/html"}, b"<p>"), NOT_READ),
        (None, "Request failed"),
    ],
)
def test_an_answer_that_cannot_be_read_is_told_without_its_body(answer, why):
    assert granted_by(answer) == Refused("", why)


def test_a_pair_without_a_time_has_no_end_and_one_whose_time_is_0_ends_at_once():
    old = {"refresh_token": "once", "scopes": ["s"]}
    assert following(old, WHOLE, 10.0)["expires_at"] is None
    assert following(old, {**WHOLE, "expires_in": 0}, 10.0)["expires_at"] == 10_000
