"""What Claude Code says of an authorization server's answer that it cannot read.

A refusal is told with its body, new tokens never are. The log strikes out what is called like a secret in the body.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fake_runtimes.granting import FIRST_FAULT, Unfit, unfit_tokens
from fake_runtimes.profile import ClaudeProfile
from fake_runtimes.text import kind
from harness.world import Response

NOTHING, NO_JSON = "Unexpected end of JSON input", "Failed to parse JSON"
FAULTS = {
    "Unterminated string starting at": "Unterminated string",
    "Expecting ',' delimiter": "Expected '}'",
    "Expecting ':' delimiter": "Expected ':' before value in object property definition",
    "Extra data": "Unable to parse JSON string",
}
"""By what Python finds wrong. Of lists, escapes and great depth nothing was measured."""
NO_NAME, TOO_DEEP = "Property name must be a string literal", "Maximum call stack size exceeded"


def words(answer: Response, profile: ClaudeProfile) -> str:
    """What is told of it."""
    body = answer.body.decode(errors="replace")
    if answer.status >= FIRST_FAULT:
        why = fault(body)
        told = f"SyntaxError: JSON Parse error: {why}" if why else faults(unfit_error(json.loads(body)), profile)
        return f"HTTP {answer.status}: Invalid OAuth error response: {told}. Raw body: {body}"
    if not body:
        return NOTHING
    why = fault(body)
    if why:
        return NO_JSON if profile.log_wording == "numbered" else f"JSON Parse error: {why}"
    return f"token response rejected by SDK schema: {faults(unfit_tokens(json.loads(body)), profile)}"


def fault(text: str) -> str:
    """What is wrong with a text that is no JSON, as the engine of the program says it; empty where it is some."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Expecting value":
            return unexpected(text[error.pos :])
        return FAULTS.get(error.msg, NO_NAME)
    except RecursionError:
        return TOO_DEEP
    return ""


def unexpected(rest: str) -> str:
    """What stands where a value should."""
    if not rest:
        return "Unexpected EOF"
    word = rest[: next((at for at, each in enumerate(rest) if not (each.isalnum() or each in "_$")), len(rest))]
    return f'Unexpected identifier "{word}"' if word and not word[0].isdigit() else f"Unrecognized token '{rest[0]}'"


def unfit_error(document: Any) -> Iterable[Unfit]:
    """What keeps a JSON value from being an error of OAuth; its code has been looked for in vain."""
    if not isinstance(document, dict):
        return [Unfit("", "object", kind(document))]
    return [Unfit("error", "string", kind(document["error"]) if "error" in document else "undefined")]


def faults(found: Iterable[Unfit], profile: ClaudeProfile) -> str:
    """As the library that checks documents lists them."""
    return json.dumps([shown(each, profile) for each in found], indent=2)


def shown(unfit: Unfit, profile: ClaudeProfile) -> dict[str, Any]:
    """One of them."""
    types = f": expected {unfit.expected}, received {unfit.found}" if profile.faults_name_types else ""
    return {
        "expected": unfit.expected,
        "code": "invalid_type",
        **({"received": unfit.found} if unfit.found == "NaN" else {}),
        "path": [unfit.member] if unfit.member else [],
        "message": f"Invalid input{types}",
    }
