"""What is made of a token endpoint's answer that cannot be read, and whether the tokens in it get into the log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.canary.claims import UNSTATED, probe
from harness.canary.probes.claude.authority import CUT_PAIR, HTML, SECRET, Grant, GuardedDoors
from harness.canary.probes.claude.ground import log, said
from harness.canary.probes.claude.refreshing import (
    AFFECTS,
    FAILED,
    GUARDED,
    NEW_TOKEN,
    Failure,
    failure_claims,
    kept,
    stated,
    traces,
)
from harness.canary.trial import Trial

WHOLE: Mapping[str, Any] = {"access_token": NEW_TOKEN, "token_type": "Bearer", "refresh_token": SECRET}
CUT = f'{{"access_token": "{SECRET}"'


def answered(status: int = 200, **members: Any) -> Grant:
    """A new pair with other members; one that is ... is left out."""
    return Grant(json.dumps({name: each for name, each in {**WHOLE, **members}.items() if each is not ...}), status)


def kept_once_a_round(trace: Mapping[str, Any]) -> bool:
    """Both tokens are still in the entry; nothing is asked for again within a renewal."""
    return kept(trace) and trace["asked"] == 3


def taken(trace: Mapping[str, Any]) -> bool:
    """The new token is in the entry."""
    return bool(trace["entry"]["accessToken"] == NEW_TOKEN)


def failing(says: str, grant: Grant) -> Failure:
    """An answer that is no pair."""
    return Failure(f"{says} leaves the entry, and is asked for once in each renewal", grant, kept_once_a_round)


CASES: Mapping[str, Failure] = {
    "cut": failing("JSON that is cut off in a token", Grant(CUT_PAIR)),
    "cut-member": failing("JSON that is cut off behind a member", Grant(CUT)),
    "cut-comma": failing("JSON that is cut off behind a comma", Grant(f"{CUT}, ")),
    "cut-name": failing("JSON that is cut off behind a name", Grant(f'{CUT}, "scope"')),
    "cut-colon": failing("JSON that is cut off behind a colon", Grant(f'{CUT}, "scope": ')),
    "twice": failing("JSON with something behind it", Grant(f"{CUT}}}{{}}")),
    "page": failing("a web page", Grant(f"<html>{SECRET}</html>", 200, HTML)),
    "form": failing("a form", Grant(f"access_token={SECRET}&token_type=bearer")),
    "empty": failing("an empty answer", Grant("")),
    "no-content": failing("204", Grant("", 204)),
    "list": failing("a list", Grant(f'["{SECRET}"]')),
    "null": failing("null", Grant("null")),
    "no-token": failing("a pair without an access token", answered(access_token=...)),
    "number": failing("a pair with a number for an access token", answered(access_token=1)),
    "no-type": failing("a pair without a type", answered(token_type=...)),
    "null-refresh": failing("a pair with null for a refresh token", answered(refresh_token=None)),
    "scope-list": failing("a pair with a list for a scope", answered(scope=["read"])),
    "words-for-time": failing("a pair with words for its time", answered(expires_in="one hour")),
    "text-for-time": Failure("a pair with its time in quotes is taken", answered(expires_in="3600"), taken),
    "created": Failure("a pair under 201 is taken", answered(201), taken),
}
NO_TIME: Mapping[str, Any] = {"zero": 0, "null": None, "false": False, "empty": ""}


@probe(
    *failure_claims({f"unread-{name}": case for name, case in CASES.items()}),
    stated(
        "unread-said",
        "what the log says of each",
        UNSTATED,
        reads=("log_wording", "faults_name_types"),
        affects="whoever reads the log of a server that failed",
    ),
    stated(
        "unread-told",
        "nothing of the tokens in such an answer gets into the log",
        [],
        "failure-record-no-secret-values",
    ),
    stated(
        "no-time",
        "a pair whose time is 0, or what counts as 0, has expired at once, and is renewed for the next request",
        {name: ["has expired", "renewed again"] for name in NO_TIME},
        affects=AFFECTS,
    ),
    seconds=2.0,
)
def unreadable_answers(trial: Trial) -> Mapping[str, Any]:
    """All answers under a good status, in one `claude mcp list`."""
    cases = {f"unread-{name}": case for name, case in CASES.items()}
    timed = {f"time-{name}": Failure("", answered(expires_in=value), taken) for name, value in NO_TIME.items()}
    grants = {name: case.grant for name, case in {**cases, **timed}.items()}
    found = traces(trial, {**cases, **timed}, GuardedDoors(dict.fromkeys(grants, GUARDED), grants))
    texts = {name: [" ".join(text.split()) for _, text in said(log(trial, name))] for name in cases}
    failed = {name: {text for text in lines if text.startswith(FAILED)} for name, lines in texts.items()}
    return {
        **{name: each for name, each in found.items() if name.startswith("claude.refresh.unread-")},
        "claude.refresh.unread-said": {
            name: "; ".join(sorted(lines)).removeprefix(FAILED) for name, lines in failed.items() if lines
        },
        "claude.refresh.unread-told": [name for name, lines in texts.items() if SECRET in "".join(lines)],
        "claude.refresh.no-time": {name: timing(found[f"claude.refresh.time-{name}"]) for name in NO_TIME},
    }


def timing(trace: Mapping[str, Any]) -> list[str]:
    """Whether a new pair has an expiry, and whether there was another one after it."""
    has_time = taken(trace) and trace["entry"]["expiresAt"] != "none"
    return ["has expired" if has_time else "never expires", "renewed again" if trace["asked"] > 1 else "renewed once"]
