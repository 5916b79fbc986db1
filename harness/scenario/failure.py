"""A failure as a file: the scenario whole, the decisions one by one, what fell, and the code that it fell with.

It is replayed strictly: a choice of another kind or among another number is the verdict divergence, and so is a run
that meets every choice and fails otherwise. The runs of equal decisions are written once, with their count.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator

from harness import __version__
from harness.errors import UserInputError
from harness.inputs.files import display_path, read_text
from harness.scenario.fingerprint import changed, fingerprint
from harness.scenario.model import Scenario
from harness.scenario.production import Report, play
from harness.scenario.signature import Signature, read_signature, signature, signatures
from harness.scenario.trees import Tree, checked_scenario, plain, tree_of
from harness.scenario.verdicts import Verdict
from harness.scenario.writing import toml_text
from harness.world.model import Decision, Replayed

FORMAT = "mcp-harness/failure/1"
SCHEMA_NAME = "failure.schema.json"
WITHOUT_VALUES = ("const", "required", "additionalProperties")
"""Rules whose message names keys and what is wanted, and nothing of what the file holds, which may be a secret."""
SUFFIX = ".failure.toml"
MOST_DECISIONS = 1_000_000
LINE_WIDTH = 110
NAME_DIGITS = 6
_CHOICE = re.compile(r"(run|stall|fault|start)(?:\.(\d{1,9}))?(?:=(\d{1,9}))?", re.ASCII)
_FORMAT_LINE = re.compile(r'^format\s*=\s*"mcp-harness/failure/', re.MULTILINE)


class Failure(NamedTuple):
    """A failed run. `runtime` is spelled with its version, `variant` the known-bad variant that was in place.

    `code` maps parts of the sources to their digests; `minimal` tells that nothing more can be taken from it.
    """

    scenario: Tree
    runtime: str
    decisions: tuple[Decision, ...]
    signature: Signature
    seed: int = 0
    variant: str | None = None
    minimal: bool = False
    code: Mapping[str, str] = {}
    trace_digest: str = ""

    @property
    def name(self) -> str:
        """A file name for it: the scenario's id and a digest of what fell."""
        return failure_name(str(self.scenario["id"]), self.signature, self.runtime, self.variant)


def failure_name(identifier: str, fallen: Signature, runtime: str, variant: str | None) -> str:
    """What the file of such a failure is called: equal for runs that fail the same way."""
    told = json.dumps([*fallen, runtime, variant])
    return f"{identifier}-{hashlib.sha256(told.encode()).hexdigest()[:NAME_DIGITS]}{SUFFIX}"


class Replay(NamedTuple):
    """A failure played again. `hint` says which code has changed since; empty when none has."""

    failure: Failure
    report: Report
    hint: str


def failure_of(report: Report, *, seed: int = 0, variant: str | None = None, tree: Tree | None = None) -> Failure:
    """The failure that a run showed; `tree` where its scenario was not read from a text. The run must have failed."""
    fallen = signature(report)
    if fallen is None:
        raise ValueError(f"the run is no failure: {report.verdict}")
    return Failure(
        tree_of(report.scenario) if tree is None else tree,
        report.runtime.label,
        report.decisions,
        fallen,
        seed,
        variant,
        code=fingerprint(),
        trace_digest=report.trace_digest,
    )


# --- the file


def failure_text(failure: Failure) -> str:
    """The file's text."""
    document: dict[str, Any] = {"format": FORMAT, "made_by": f"mcp-harness {__version__}", "runtime": failure.runtime}
    document["seed"] = failure.seed
    if failure.variant is not None:
        document["variant"] = failure.variant
    document |= {"minimal": failure.minimal, "trace": failure.trace_digest}
    document["decisions"] = decisions_text(failure.decisions)
    document["signature"] = {key: value for key, value in failure.signature._asdict().items() if value}
    document["code"] = dict(failure.code)
    document["scenario"] = plain(failure.scenario)
    return toml_text(document, f"{failure.signature}\nreplay: mcp-harness run FILE   smaller: mcp-harness shrink FILE")


def decisions_text(decisions: Sequence[Decision]) -> str:
    """`run.3=1 stall*12 run.4+stall*5`: kind, among how many (2), which (0); what is 2 or 0 is left out. Then how
    often in a row one choice, or two that alternate.
    """
    lines, line = [], ""
    for token in _tokens(decisions):
        if line and len(line) + len(token) >= LINE_WIDTH:
            lines.append(line)
            line = ""
        line = f"{line} {token}" if line else token
    return "\n".join([*lines, line]) + "\n" if line else ""


def _tokens(decisions: Sequence[Decision]) -> Iterator[str]:
    index = 0
    while index < len(decisions):
        length = 1 if _repeats(decisions, index, 1) > 1 or _repeats(decisions, index, 2) < 2 else 2
        count = _repeats(decisions, index, length)
        unit = "+".join(map(_choice, decisions[index : index + length]))
        yield f"{unit}*{count}" if count > 1 else unit
        index += count * length


def _repeats(decisions: Sequence[Decision], first: int, length: int) -> int:
    """How often the choices that begin here come in a row."""
    unit, count = decisions[first : first + length], 1
    while decisions[first + count * length : first + (count + 1) * length] == unit:
        count += 1
    return count


def _choice(decision: Decision) -> str:
    kind, arity, value = decision
    return kind + (f".{arity}" if arity != 2 else "") + (f"={value}" if value else "")


def parse_decisions(text: str) -> tuple[Decision, ...]:
    """The decisions of a text. Raises ValueError with the word that is none."""
    decisions: list[Decision] = []
    for word in text.split():
        choices, _, times = word.partition("*")
        count = int(times) if times.isascii() and times.isdigit() and len(times) < 10 else 1 if choices == word else 0
        unit = [_parse_choice(choice) for choice in choices.split("+")]
        if count < 1 or None in unit:
            raise ValueError(f"{word!r} is no decision")
        if len(decisions) + count * len(unit) > MOST_DECISIONS:
            raise ValueError(f"it holds more than {MOST_DECISIONS:,} decisions")
        decisions += [choice for choice in unit if choice is not None] * count
    return tuple(decisions)


def _parse_choice(text: str) -> Decision | None:
    found = _CHOICE.fullmatch(text)
    if found is None:
        return None
    decision = Decision(found[1], int(found[2] or 2), int(found[3] or 0))
    return decision if decision.arity >= 2 and decision.value < decision.arity else None


def is_failure_text(text: str) -> bool:
    """Whether a text says that it is a failure file."""
    return _FORMAT_LINE.search(text) is not None


def load_failure(path: Path) -> Failure:
    """The failure in a file. Raises UserInputError."""
    return read_failure(read_text(path, f"mine{SUFFIX}"), display_path(path))


def read_failure(text: str, name: str = "failure.toml") -> Failure:
    """The failure in a text. Raises UserInputError of one line."""
    try:
        tree = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserInputError(f"is no TOML: {error}", file=name, fix="Take the file as mcp-harness wrote it.") from None
    if "format" not in tree:
        fix = f"A run that fails writes one: mcp-harness run {name} --save out."
        raise UserInputError("is no failure file", file=name, fix=fix)
    fault = next(
        iter(sorted(_validator().iter_errors(tree), key=lambda each: list(map(str, each.absolute_path)))), None
    )
    if fault is not None:
        place = ".".join(map(str, fault.absolute_path)) or "the file"
        broken = f"it breaks the rule `{fault.validator}` of schemas/{SCHEMA_NAME}"
        what = fault.message if fault.validator in WITHOUT_VALUES else broken
        raise UserInputError(f"{place}: {what}", file=name, fix="Take the file as mcp-harness wrote it.")
    try:
        decisions = parse_decisions(tree["decisions"])
    except ValueError as error:
        raise UserInputError(f"decisions: {error}", file=name, fix="Write them as run.3=1 stall*12.") from None
    checked_scenario(tree["scenario"], f"{name}: its scenario")
    return Failure(
        tree["scenario"],
        tree["runtime"],
        decisions,
        read_signature(tree["signature"]),
        tree["seed"],
        tree.get("variant"),
        tree["minimal"],
        tree["code"],
        tree["trace"],
    )


@functools.cache
def _validator() -> Draft202012Validator:
    text = (files("harness.scenario") / "schemas" / SCHEMA_NAME).read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))


# --- playing it again


def replay(failure: Failure, *, notes_points: bool = False) -> Replay:
    """Play it again, strictly. The known-bad variant that it names is put in place by the caller.

    The report's verdict is the failure's own where it shows again, pass where the rule holds now, and divergence
    where a choice differs or something else falls.
    """
    scenario = checked_scenario(failure.scenario, str(failure.scenario.get("id", "scenario")))
    report = play(
        scenario,
        failure.runtime,
        Replayed(failure.decisions, complete=bool(failure.decisions)),
        seed=failure.seed,
        notes_points=notes_points,
    )
    fallen = signatures(report)
    if fallen and report.verdict is not Verdict.DIVERGENCE and failure.signature not in fallen:
        detail = f"every choice was met, but what falls is another thing: {fallen[0]}"
        report = report._replace(verdict=Verdict.DIVERGENCE, detail=detail)
    return Replay(failure, report, _hint(failure, report))


def _hint(failure: Failure, report: Report) -> str:
    parts = changed(failure.code) if failure.code else ()
    if parts:
        return f"the code is not what it was: {', '.join(parts)}"
    shows_again = report.verdict.value == failure.signature.verdict
    if shows_again and failure.trace_digest not in ("", report.trace_digest):
        return "the same falls, but not everything before it happened as it was"
    return ""


def nonzero(decisions: Sequence[Decision]) -> Iterator[int]:
    """Where somebody did anything but go on."""
    return (index for index, decision in enumerate(decisions) if decision.value)


def scenario_of(failure: Failure) -> Scenario:
    """Its scenario, with a text. Raises UserInputError."""
    return checked_scenario(failure.scenario, failure.name)
