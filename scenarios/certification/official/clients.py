"""The suite's scenarios of authorization against clients: the reference's, and two that must fail."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from shlex import join
from typing import NamedTuple

from scenarios.certification.official import running
from scenarios.certification.official.installing import Suite
from scenarios.certification.official.running import LISTED, RESULT_NAME, Check, Played, Processes

BASELINE = Path(__file__).with_name("clients.toml")
PROGRAM = Path(__file__).with_name("reference_client.py")
AREA = "auth/"
USUAL_REVISION = "2025-11-25"
CLIENT_NAME = "client"
STDERR_NAME = "stderr.txt"
RAISED = "Traceback (most recent call last):"
BAD = ("FAILURE", "WARNING")


class Subject(NamedTuple):
    """A client as a command line, to which the suite adds the URL."""

    name: str
    command: Sequence[str]


REFERENCE = Subject("reference", (sys.executable, str(PROGRAM)))
PATH_FORMS = Subject("path-forms", (*REFERENCE.command, "--path-forms"))
IDLE = Subject("does-nothing", ("/bin/true",))
BROKEN = Subject("exits-3", ("/bin/sh", "-c", "exit 3"))


def scenarios(processes: Processes, suite: Suite) -> tuple[tuple[str, str], ...]:
    """The scenarios of a version of the suite, each with the revision at which it is played; "" where it has none."""
    with tempfile.TemporaryDirectory() as folder:
        _, output = processes.run([str(suite.node), str(suite.program), "list", "--client"], Path(folder))
    return tuple(listed(output))


def listed(output: str) -> Iterator[tuple[str, str]]:
    """Those of authorization in what `list` prints."""
    for line in LISTED.finditer(output):
        revisions = [each for each in line["revisions"].split(",") if each[:1].isdigit()]
        usual = USUAL_REVISION if USUAL_REVISION in revisions else (revisions or [""])[0]
        if line["name"].startswith(AREA):
            yield line["name"], usual


def play(processes: Processes, suite: Suite, scenario: str, revision: str, subject: Subject) -> Played:
    """Run a scenario against a client, which is one word in the folder where the suite runs it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        client = folder / CLIENT_NAME
        client.write_text(f'#!/bin/sh\nexec {join(subject.command)} "$@"\n')
        client.chmod(0o700)
        options = ["--command", f"./{CLIENT_NAME}", "--scenario", scenario, "-o", str(folder / "results")]
        if revision and suite.is_newest:
            options += ["--spec-version", revision]
        argv = [str(suite.node), str(suite.program), "client", *options]
        code, output = processes.run(argv, folder)
        texts = [result.read_text(encoding="utf-8") for result in sorted((folder / "results").rglob(RESULT_NAME))]
        said = "".join(each.read_text(encoding="utf-8") for each in (folder / "results").rglob(STDERR_NAME))
    played = judged(scenario, code, texts, output)
    return played._replace(problem=crash(said)) if crash(said) else played


def crash(said: str) -> str | None:
    """What a client raised, by what it wrote to stderr: its checks are those of a client that did nothing."""
    lines = said.strip().splitlines()
    return f"the client raised {lines[-1]}" if any(line.startswith(RAISED) for line in lines) else None


def judged(scenario: str, code: int | None, results: Sequence[str], output: str) -> Played:
    """What a run shows. Its exit code must go with its checks, warnings among them: else the client itself failed."""
    said = " ".join(output.split())[-200:]
    if code is None:
        return Played(scenario, (), f"did not end within {running.LIMIT_SECONDS:g} s: {said}")
    if len(results) != 1:
        return Played(scenario, (), f"left {len(results)} results and exit code {code}: {said}")
    checks = tuple(proving(running.read_checks(scenario, results[0])))
    bad = any(check.status in BAD for check in checks)
    if code != int(bad):
        return Played(scenario, checks, f"exit code {code} although its checks say {'failed' if bad else 'passed'}")
    return Played(scenario, checks)


def unnoticed(played: Iterable[Played], idle: Collection[str]) -> Iterator[str]:
    """The scenarios, but for those that prove nothing, in which a client went wrong and the suite does not tell."""
    for each in played:
        if each.scenario not in idle and each.problem is None and not any(check.status in BAD for check in each.checks):
            yield f"passes {each.scenario}: a client that fails is not noticed"


def proving(checks: Iterable[Check]) -> Iterator[Check]:
    """The checks, but for the notes of what was sent and received, which prove nothing."""
    return (
        check for check in checks if check.status != "INFO" or not check.name.startswith(("incoming-", "outgoing-"))
    )
