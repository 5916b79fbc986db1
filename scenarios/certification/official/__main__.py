"""`make conformance`: 0 all as the baseline says, 1 something differs, 3 the suite could not be installed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from fake_servers.mounts import Mount
from harness.canary.cache import NotInstalledError, cache_folder
from scenarios.certification.official import clients, comparing, installing, providers, running
from scenarios.certification.official.comparing import Baseline
from scenarios.certification.official.installing import Suite
from scenarios.certification.official.running import Check, Played, Processes
from scenarios.certification.official.servers import CERTIFIED, CONTROLS, QUIRKS, Subject

ORIGIN = "http://127.0.0.1:0"
AT_ONCE = 2
DIFFERENT, NOT_INSTALLED = 1, 3


class Judgement(NamedTuple):
    """What one version of the suite says of one server; `anyway` of the checks pass without a server as well."""

    suite: str
    subject: str
    checks: Mapping[str, Check]
    complaints: tuple[str, ...]
    seconds: float
    anyway: int = 0

    @property
    def passed(self) -> frozenset[str]:
        """The checks that found all well."""
        return frozenset(key for key, check in self.checks.items() if check.status == "SUCCESS")

    def __str__(self) -> str:
        notes = sum(check.status == "INFO" for check in self.checks.values())
        failed = len(self.checks) - len(self.passed) - notes
        verdict = f"{len(self.complaints)} DIFFERENT" if self.complaints else "as expected"
        counts = f"{len(self.passed):4} passed ({self.anyway:2} anyway) {failed:4} not {notes:3} notes"
        return f"{self.suite:15} {self.subject:16} {counts} {self.seconds:6.1f} s  {verdict}"


def main() -> int:
    """Run everything, print a line a server and one a difference."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(DIFFERENT))
    environment = installing.environment_here()
    try:
        suites = installing.install(cache_folder(environment), environment)
    except NotInstalledError as error:
        print(f"conformance: NOTHING WAS CERTIFIED: {error}", file=sys.stderr)
        return NOT_INSTALLED
    watch, different = running.Stopwatch(), 0
    for judgement in (*judge_servers(suites), *judge_providers(suites), *judge_clients(suites)):
        different += len(judgement.complaints)
        print(judgement, *judgement.complaints, sep="\n  ", flush=True)
    print(f"{different} differences; {watch.seconds:.0f} s")
    return DIFFERENT if different else 0


def judge_servers(suites: Sequence[Suite]) -> Iterator[Judgement]:
    """Every MCP server, certified or with a quirk, and those that do nothing."""
    baseline = comparing.read_baseline(comparing.BASELINE.read_text(encoding="utf-8"))
    for suite in suites:
        anyway: dict[str, frozenset[str]] = {}
        for subject in (*CONTROLS, *CERTIFIED, *QUIRKS):
            if suite.version in subject.suites:
                judgement = judge(suite, subject, baseline)
                passed = anyway.setdefault(subject.revision, judgement.passed)
                judgement = judgement._replace(anyway=len(judgement.passed & passed))
                yield judgement


def judge_providers(suites: Sequence[Suite]) -> Iterator[Judgement]:
    """Every well-behaved provider, and those with a quirk, by the version of the suite that tests them."""
    baseline = comparing.read_baseline(providers.BASELINE.read_text(encoding="utf-8"))
    for suite in suites:
        for subject in (*providers.CERTIFIED, *providers.QUIRKS):
            if suite.is_newest:
                watch = running.Stopwatch()
                with Processes() as processes:
                    played = providers.play(processes, suite, subject)
                wanted = comparing.expected(baseline.groups, suite.version, subject.name, subject.like)
                yield judged(suite, subject.name, played, wanted, watch.seconds)


def judge_clients(suites: Sequence[Suite]) -> Iterator[Judgement]:
    """The reference's client, as it is and with its option; first one that does nothing, then one that always fails."""
    baseline = comparing.read_baseline(clients.BASELINE.read_text(encoding="utf-8"))
    for suite in suites:
        watch = running.Stopwatch()
        nothing = play_client(suite, clients.IDLE)
        anyway = frozenset(key for key, check in running.by_key(nothing).items() if check.status == "SUCCESS")
        idle = {
            name.removeprefix(f"{suite.version} ") for name in baseline.idle if name.startswith(f"{suite.version} ")
        }
        told = [*comparing.unmoved(nothing, idle), *clients.unnoticed(play_client(suite, clients.BROKEN), idle)]
        yield Judgement(suite.version, clients.IDLE.name, running.by_key(nothing), tuple(told), watch.seconds)
        for subject in (clients.REFERENCE, clients.PATH_FORMS):
            watch = running.Stopwatch()
            played = play_client(suite, subject)
            wanted = comparing.expected(baseline.groups, suite.version, subject.name)
            judgement = judged(suite, subject.name, played, wanted, watch.seconds)
            yield judgement._replace(anyway=len(judgement.passed & anyway))


def play_client(suite: Suite, subject: clients.Subject) -> tuple[Played, ...]:
    """Each scenario of authorization in a process of its own, some at once. None lives when this ends."""
    with ThreadPoolExecutor(AT_ONCE) as workers, Processes() as processes:
        chosen = clients.scenarios(processes, suite)
        played = [workers.submit(clients.play, processes, suite, *each, subject) for each in chosen]
        return tuple(each.result() for each in played)


def judged(suite: Suite, name: str, played: Sequence[Played], wanted: Mapping[str, str], seconds: float) -> Judgement:
    """What was played, compared with what is wanted."""
    checks = running.by_key(played)
    complaints = [f"{each.scenario}: {each.problem}" for each in played if each.problem]
    complaints += map(str, comparing.compare(wanted, checks))
    if not played:
        complaints.append("the suite lists no scenario")
    return Judgement(suite.version, name, checks, tuple(complaints), seconds)


def judge(suite: Suite, subject: Subject, baseline: Baseline) -> Judgement:
    """Run all scenarios against one server and compare."""
    watch = running.Stopwatch()
    played = play_all(suite, subject)
    checks = running.by_key(played)
    complaints = [f"{each.scenario}: {each.problem}" for each in played if each.problem]
    if subject in CONTROLS:
        complaints += comparing.unmoved(played, baseline.idle)
    else:
        wanted = comparing.expected(baseline.groups, suite.version, subject.name, subject.like)
        complaints += map(str, comparing.compare(wanted, checks))
    if not played:
        complaints.append("the suite lists no scenario")
    return Judgement(suite.version, subject.name, checks, tuple(complaints), watch.seconds)


def play_all(suite: Suite, subject: Subject) -> tuple[Played, ...]:
    """Each scenario in a process of its own, some at once, all against one server. None lives when this ends."""
    with Mount({ORIGIN: subject.server()}) as mount, ThreadPoolExecutor(AT_ONCE) as workers, Processes() as processes:
        url = mount.url(f"{ORIGIN}/mcp")
        names = running.scenarios(processes, suite, subject.revision)
        played = [workers.submit(running.play, processes, suite, name, url, subject.revision) for name in names]
        return tuple(each.result() for each in played)


if __name__ == "__main__":
    sys.exit(main())
