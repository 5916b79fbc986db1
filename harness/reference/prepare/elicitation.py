"""The ELICITATION_* variables that a stdio server gets, so that it can ask the human behind the session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.reference.prepare.forwarding import without_forwarded

TTL_MS = 3_600_000
ENDPOINT = "/api/v1/elicitations"


def values(base_url: str, session_id: str) -> dict[str, str]:
    """The five variables for a session of the instance at `base_url`."""
    url = base_url.rstrip("/") + ENDPOINT
    return {
        "ELICITATION_REQUEST_URL": url,
        "ELICITATION_POLL_URL": url,
        "ELICITATION_PREFER_HTTP_FALLBACK": "true",
        "ELICITATION_TTL_MS": str(TTL_MS),
        "ELICITATION_SESSION_ID": session_id,
    }


def with_elicitation(entry: Any, elicitation: Mapping[str, str], dotenv: Mapping[str, str]) -> Any:
    """A stdio entry with the variables merged into its env; `.env` beats Zimmer, Zimmer beats the entry.

    An entry without a command, or with an env that is no table, is given back as it is
    (prepare-elicitation-env).
    """
    if not elicitation or not isinstance(entry, Mapping) or "command" not in entry:
        return entry
    env = entry.get("env", {})
    if not isinstance(env, Mapping):
        return entry
    written = {name: dotenv.get(name, value) for name, value in elicitation.items()}
    return without_forwarded({**entry, "env": {**env, **written}}, written)
