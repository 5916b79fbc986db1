"""By what two failures are the same: which rule fell, and on whom. Times, seeds and passing words do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.scenario import model
from harness.scenario.invariants import Finding
from harness.scenario.naming import OPERATOR, plain
from harness.scenario.production import Judged, Report
from harness.scenario.verdicts import Verdict

EXPECTATION, INVARIANT, RUN = "expectation", "invariant", "run"
_WORD = re.compile(r"[\w@./#-]*\w")
_NUMBERED = re.compile(r"([-#])\d+\b")
_OF_A_RUN = re.compile(r"(?<=\w)#(?:\d+|N)\b| ?\b(?:in |of )?run \d+\b")
"""Which run of a session something is about: of an actor's name, and in the sentence of an expectation."""
_CODE = re.compile(
    r"\b(E[A-Z]{4,}|ERR_[A-Z_]+|MODULE_NOT_FOUND|Permission denied|Connection closed|connection closed|timed out"
    r"|there is no run|there is no such request|not-started)\b"
)
"""What an error code tells apart; and that there was nothing to look at, which is no case of what it looked like."""


class Signature(NamedTuple):
    """`verdict` is the run's; `kind` and `rule` tell what fell: an expectation's sentence, an invariant's name, or
    nothing but the run itself. `who` is the session, server or actor it fell on, `cause` the code that the runtime
    or npm gave for it, `hole` the accepted hole it was classified as; each is empty where there is none.
    """

    verdict: str
    kind: str
    rule: str
    who: str = ""
    cause: str = ""
    hole: str = ""

    def __str__(self) -> str:
        odd = [word for word in (self.cause, self.hole) if word]
        parts = [self.rule, f"on {self.who}" if self.who else "", f"({'; '.join(odd)})" if odd else ""]
        return f"{self.verdict}: {' '.join(filter(None, parts))}"

    def is_called(self, word: str) -> bool:
        """Whether somebody means it by these words: of its rule or of whom it fell on, dashes as spaces."""
        wanted = re.compile(rf"(?<!\w){re.escape(_words(word))}(?!\w)")
        return any(wanted.search(_words(text)) for text in (self.rule, self.who))


def read_signature(tree: Mapping[str, str]) -> Signature:
    """That of a failure file, which may be of a time when other names were alike."""
    found = Signature(**tree)
    return found._replace(rule=alike(found.rule), who=alike(found.who))


def signatures(report: Report) -> tuple[Signature, ...]:
    """One for each rule that fell, the gravest first: what must hold in every run comes before what one scenario
    expects. Empty when the run is no failure.
    """
    if report.verdict.exit_code == 0:
        return ()
    if report.verdict is not Verdict.FAIL:
        return (Signature(report.verdict.value, RUN, _without_numbers(report.detail)),)
    return tuple(_fallen(report))


def chains_lost(report: Report) -> frozenset[str]:
    """The accepted holes that cost a run a token chain."""
    return frozenset(name for name, walked in report.holes.items() if walked.lost)


def falls_alike(report: Report, kept: Signature, cost: frozenset[str]) -> bool:
    """Whether the same falls in a run, and the holes of `cost` have cost it a chain."""
    return kept in signatures(report) and cost <= chains_lost(report)


def _fallen(report: Report) -> Iterator[Signature]:
    verdict = report.verdict.value
    for finding in report.invariants:
        if finding.holds is False:
            yield Signature(verdict, INVARIANT, finding.name, alike(_struck(report, finding)), _cause(finding.detail))
    for judged in report.judged:
        if not judged.seen.met and not judged.expectation.warns:
            rule, who = alike(judged.expectation.says), alike(_subject(judged))
            yield Signature(verdict, EXPECTATION, rule, who, _cause(judged.seen.instead))


def signature(report: Report) -> Signature | None:
    """That of the gravest rule that fell."""
    return next(iter(signatures(report)), None)


def _subject(judged: Judged) -> str:
    """On whom an expectation looks."""
    check = judged.expectation.check
    session = getattr(check, "session", None) or ""
    match check:
        case model.ServerIs(server=server) | model.Received(server=server):
            return f"{session} {server}".strip()
        case model.EventHappens(match=match):
            return " ".join(filter(None, ["" if match.who == "*" else match.who, str(match.where.get("server", ""))]))
    return session


def _struck(report: Report, finding: Finding) -> str:
    """Whom a broken invariant is about, without its session (sessions of one kind are alike): whoever its own words
    name first, so that a campaign names the same one as the run; else the actor of the event that broke it.
    """
    for word in _WORD.findall(finding.detail):
        if word in _somebody(report):
            return plain(word).rpartition("/")[2]
    if not finding.events:
        return ""
    event = report.events[finding.events[-1]]
    server = event.details.get("server")
    return str(server or plain(event.actor).rpartition("/")[2])


def _somebody(report: Report) -> set[str]:
    """All who can be named: actors with and without their numbers, servers, authorization servers."""
    actors = {event.actor for event in report.events} - {OPERATOR}
    return {*actors, *map(plain, actors), *report.scenario.catalog, *report.scenario.authorizations}


def alike(text: str) -> str:
    """Names that differ by a number alone (`tool-1`, `tool-2`) are alike: which of them it was is chance.

    So are the runs of a session, whose numbers say how often it ran before.
    """
    return _NUMBERED.sub(r"\1N", _OF_A_RUN.sub("", text)).strip()


def _cause(text: str) -> str:
    """The error code in a runtime's words, which tells a lost race from a budget that was over; or what was missing."""
    found = _CODE.search(text)
    return found[1] if found else ""


def _words(text: str) -> str:
    return text.casefold().replace("-", " ")


def _without_numbers(text: str) -> str:
    return re.sub(r"\d[\d,.]*", "N", text)
