"""`mcp-harness canary list`: all claims, with where they come from and on which versions they are known to hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.canary.claims import Claim
from harness.report.safety import count, visible

SCHEMA = "mcp-harness/canary-list/1"
WIDTH = 50
HELD, BROKEN, SEEN = "holds", "broken", "seen"
"""What a recorded version says of a claim; `seen`: nothing is relied on, so there is nothing to hold."""

Records = Mapping[str, Mapping[str, Any]]
"""What was observed, by the labels of versions."""


class Listed(NamedTuple):
    """The claims that were asked for, and the records of the versions that were."""

    claims: Sequence[Claim]
    records: Records


def standing(claim: Claim, records: Records) -> dict[str, str]:
    """What each version that has an answer says of a claim."""
    words = {True: HELD, False: BROKEN, None: SEEN}
    return {label: words[claim.holds(record[claim.id])] for label, record in records.items() if claim.id in record}


def text(listed: Listed) -> str:
    """Two lines for each claim."""
    lines = []
    width = min(max((len(claim.id) for claim in listed.claims), default=0), WIDTH)
    for claim in listed.claims:
        lines.append(f"{claim.id:<{width}}  {visible(claim.says)}")
        lines.append(f"{'':<{width}}  {'; '.join(facts(claim, listed.records))}")
    how = "explain one with: mcp-harness explain ID; ask one with: mcp-harness canary RUNTIME --claims ID"
    return "".join(f"{line}\n" for line in (*lines, f"{count(len(listed.claims), 'claim')}; {how}; exit 0"))


def facts(claim: Claim, records: Records) -> Iterator[str]:
    """What is known of a claim."""
    yield claim.source
    found = standing(claim, records)
    for title, words in (("recorded", (HELD, SEEN)), ("broken", (BROKEN,))):
        labels = [label for label, word in found.items() if word in words]
        if labels:
            yield f"{title}: {', '.join(labels)}"
    if not found:
        yield "not recorded"
    if claim.not_modelled:
        yield f"not modelled: {claim.not_modelled}"


def document(listed: Listed) -> str:
    """The same for programs (`schemas/canary-list.schema.json`)."""
    claims = [
        {
            "id": claim.id,
            "runtime": claim.family,
            "says": claim.says,
            "source": claim.source,
            "requirements": list(claim.relied_on),
            "affects": claim.affects,
            "profile_lines": list(claim.lines),
            "not_modelled": claim.not_modelled,
            "versions": standing(claim, listed.records),
        }
        for claim in listed.claims
    ]
    return json.dumps({"schema": SCHEMA, "claims": claims}, indent=2) + "\n"


LIST_FORMATS: Mapping[str, Callable[[Listed], str]] = {"text": text, "json": document}
