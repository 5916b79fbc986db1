"""Rules on `startup_timeout_sec`: refused values, and what a declared one does on each runtime. Source: seed 000."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fake_runtimes.profile import ClaudeProfile, CodexProfile
from harness.gate.context import Context, EntryView
from harness.gate.edits import set_value
from harness.gate.model import Severity
from harness.gate.rule import Hit, entry_rule
from harness.gate.spawn import Runtime
from harness.gate.wording import joined, labels, shown
from harness.reference.catalog.startup_timeout import FIELD, MAXIMUM, MINIMUM, SECONDS, accept

NUMBER_CHARACTERS = 6
"""A text longer than this is no number of seconds within the bounds."""


@entry_rule(
    "MH501",
    Severity.WARNING,
    "a startup budget that is refused",
    why=(
        f"A budget counts as a whole JSON number from {MINIMUM} to {MAXIMUM}. Anything else, a number in quotes or with"
        f" a fraction included, is refused with a line in the application log, and the server gets the {SECONDS} s that"
        " it would have got without the field."
    ),
    fix=f"Write a whole number of seconds from {MINIMUM} to {MAXIMUM}.",
    incidents=("#113",),
)
def refused_budget(context: Context, view: EntryView) -> Iterator[Hit]:
    value = view.fields.get(FIELD)
    refused = accept(value).refused
    if refused is None:
        return
    why = "no whole number of seconds" if refused == "not_an_integer" else f"outside {MINIMUM} to {MAXIMUM} s"
    meant = seconds_meant(value)
    yield Hit(
        (view.name, FIELD),
        f"{FIELD} {shown(value)} is {why}: Zimmer refuses it and the server gets {SECONDS} s on every runtime.",
        edits=() if meant is None else set_value(context.document, (view.name, FIELD), meant),
        at_value=True,
    )


def seconds_meant(value: Any) -> int | None:
    """The whole number that a text or a fraction of zero stands for, if it is an acceptable one."""
    if (
        isinstance(value, str)
        and len(value) <= NUMBER_CHARACTERS
        and value.strip().isascii()
        and value.strip().isdigit()
    ) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    else:
        return None
    return accept(value).seconds


@entry_rule(
    "MH512",
    Severity.WARNING,
    "a shorter startup budget",
    why=(
        "Only Codex has a budget that belongs to one server's start. Claude knows one for the whole process,"
        " floored at the default; Pi's covers every request, so a short one would cut tool calls and is not passed"
        " on. A server that hangs is given up early on Codex and holds its handshake for three minutes on the"
        " others."
    ),
    fix="Keep it for Codex, knowing that the others wait longer, or remove it.",
    incidents=("#113",),
    covers=("MH514",),
)
def shorter_budget(context: Context, view: EntryView) -> Iterator[Hit]:
    seconds = accepted_seconds(view)
    keepers = labels(context, "claude", "pi")
    if seconds is None or seconds >= SECONDS or not keepers:
        return
    honouring = labels(context, "codex")
    honoured = f"is honoured by {joined(honouring)} only" if honouring else "is honoured by none of the runtimes judged"
    kept = "; ".join(f"{keeper} keeps {SECONDS} s" for keeper in keepers)
    yield Hit((view.name, FIELD), f"{FIELD} {seconds} {honoured}; {kept}.", runtimes=keepers, at_value=True)


def accepted_seconds(view: EntryView) -> int | None:
    """The budget that counts, if one was declared."""
    return accept(view.fields.get(FIELD)).seconds


@entry_rule(
    "MH513",
    Severity.NOTE,
    "a longer startup budget",
    why=(
        "On Claude the largest budget of a session becomes MCP_TIMEOUT for every server of it, so one slow server"
        " lengthens the wait for all that hang. On Pi it becomes requestTimeoutMs, which every tool call of that"
        " server gets too."
    ),
    fix="Nothing, if that is meant.",
    incidents=("#113",),
)
def longer_budget(context: Context, view: EntryView) -> Iterator[Hit]:
    seconds = accepted_seconds(view)
    if seconds is None or seconds <= SECONDS:
        return
    claude, pi = labels(context, "claude"), labels(context, "pi")
    effects = [f"raises MCP_TIMEOUT for every server of the session on {joined(claude)}"] if claude else []
    effects += [f"lets every tool call of this server take as long on {joined(pi)}"] if pi else []
    if effects:
        yield Hit(
            (view.name, FIELD), f"{FIELD} {seconds} {' and '.join(effects)}.", runtimes=(*claude, *pi), at_value=True
        )


@entry_rule(
    "MH514",
    Severity.NOTE,
    "a budget that the first request does not wait for",
    why=(
        "Claude waits about 2 s for the servers of .mcp.json, Codex from 0.147 on about 1 s, then the first model"
        " request goes out without the tools of servers still starting. The budget only says how long the attempt"
        " goes on behind it."
    ),
    fix="Nothing in the catalog: the tools join at a later request.",
)
def first_request_goes_ahead(context: Context, view: EntryView) -> Iterator[Hit]:
    seconds = accepted_seconds(view)
    hasty = tuple(runtime.label for runtime in context.runtimes if waits_less_than(runtime, seconds or 0))
    if seconds is not None and hasty:
        yield Hit(
            (view.name, FIELD),
            f"{joined(hasty)} asks the model first without this server's tools if it starts slowly, whatever {FIELD}"
            " says.",
            runtimes=hasty,
            at_value=True,
        )


def waits_less_than(runtime: Runtime, seconds: int) -> bool:
    """Whether the first model request goes out before a server's budget is used up."""
    profile = runtime.profile
    if isinstance(profile, ClaudeProfile):
        return profile.first_request_wait_ms < seconds * 1000
    return isinstance(profile, CodexProfile) and 0 < profile.optional_grace_ms < seconds * 1000
