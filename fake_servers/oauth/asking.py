"""A request to an authorization server: as its rules see it, and as it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from fake_servers.oauth.answers import FORM, OK, Answer, parsed
from fake_servers.oauth.clients import Presented
from harness.world.ports import Request, header


class Received(NamedTuple):
    """A request that arrived: when, from whom, for which endpoint ("metadata", one of ENDPOINTS, or "" for none).

    `fields` are those of the form or the query, or the JSON object of a registration. `family` and `generation` say
    which token was presented, where it is one of this server's; `issued` is the generation that came of it. `status`
    is what was answered, 0 where the connection was broken; `processed` tells whether the rules had their effect.
    `answer` is what was scripted for it.
    """

    at: float
    who: str
    endpoint: str
    method: str
    url: str
    headers: Mapping[str, str]
    fields: Mapping[str, Any]
    grant_type: str | None
    client_id: str | None
    auth_method: str
    family: int | None
    generation: int | None
    issued: int | None
    status: int
    processed: bool
    answer: Answer = OK


class Asked(NamedTuple):
    """A request as the rules see it: its fields, whether one came twice, who it says it is from, what is scripted."""

    request: Request
    fields: dict[str, str]
    repeated: bool
    who: Presented
    answer: Answer

    @property
    def is_form(self) -> bool:
        """Whether its body is what the token and revocation endpoints take."""
        kind = header(self.request.headers, "Content-Type") or ""
        return kind.partition(";")[0].strip().lower() == FORM


def read_form(request: Request) -> tuple[dict[str, str], bool]:
    """The fields of a query (GET) or a form, and whether one came twice (the first counts)."""
    text = urlsplit(request.url).query if request.method == "GET" else request.body.decode(errors="replace")
    pairs = parse_qsl(text, keep_blank_values=True)
    fields = dict(reversed(pairs))
    return fields, len(fields) < len(pairs)


def read_document(request: Request) -> dict[str, Any] | None:
    """The JSON object of a registration; None when it is none."""
    document = parsed(request.body)
    return document if isinstance(document, dict) else None
