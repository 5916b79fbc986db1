"""An expectation in words, for whoever left out its sentence."""

from __future__ import annotations

import re

from harness.scenario import model


def said(expectation: model.Expectation, scenario: model.Scenario) -> str:
    """An expectation as a report names it: of which session, where there are several, what, and after which step."""
    session = session_of(expectation.check, scenario.sessions)
    is_named = re.search(rf"(?<!\w){re.escape(session)}(?!\w)", expectation.says) is not None
    whose = f"{session}: " if session and not is_named else ""
    return f"{whose}{expectation.says}{f' (after step {expectation.after})' if expectation.after else ''}"


def session_of(check: model.Check, sessions: tuple[str, ...]) -> str:
    """The session that an expectation is about; empty where that is none, or goes without saying."""
    if len(sessions) < 2:
        return ""
    given = getattr(check, "session", None)
    if given is None and isinstance(check, model.FileIs) and not check.path.startswith(("/", "~")):
        return sessions[0]
    return given or ""


def sentence(check: model.Check) -> str:
    """What must be so, in a few words."""
    match check:
        case model.ExitIs(exit=code, session=session, run=run):
            return " ".join(filter(None, [session or "", f"run {run}" if run else "", f"exits {code}"])).strip()
        case model.EventHappens():
            return _event(check)
        case model.RequestOffers():
            return _request(check)
        case model.ServerIs(server=server, state=state, text=text, run=run):
            return f"{server} is {state}{f' in run {run}' if run else ''}{'' if text == '*' else f': {text}'}"
        case model.FileIs():
            return _file(check)
        case model.RowIs(table=table, key=key):
            return f"{table}/{key} {_texts(check.contains, check.lacks, absent=check.absent)}"
        case model.Received(server=server, method=method, often=often):
            return f"{server} received {'requests' if method == '*' else method} {often}"
        case model.CredentialIs():
            return _credential(check)
        case model.OutputHas(stream=stream, contains=contains, lacks=lacks, run=run):
            whose = f" of run {run}" if run else ""
            return f"{stream}{whose} {f'has {contains!r}' if contains is not None else f'lacks {lacks!r}'}"
    return f"{check.name.replace('-', ' ')}"


def matched(match: model.Match) -> str:
    """Which events, in words."""
    details = ", ".join(f"{key} {value}" for key, value in match.where.items())
    who = "" if match.who == "*" else f" by {match.who}"
    return f"{match.event}{who}{f' ({details})' if details else ''}"


def _event(check: model.EventHappens) -> str:
    words = f"{matched(check.match)} {check.often}"
    if check.between:
        words += f" between {check.between[0]:g} and {check.between[1]:g} s"
    return f"{words} before {matched(check.before)}" if check.before else words


def _request(check: model.RequestOffers) -> str:
    parts = [
        f"{verb} {', '.join(names)}"
        for verb, names in (("offers", check.offers), ("lacks", check.lacks), ("has pending", check.pending))
        if names
    ]
    if check.between:
        parts.append(f"leaves between {check.between[0]:g} and {check.between[1]:g} s")
    run = f" of run {check.run}" if check.run else ""
    return f"request {check.number}{run} {' and '.join(parts) or 'is sent'}"


def _credential(check: model.CredentialIs) -> str:
    parts = [f"is {check.state}"] if check.state is not None else []
    parts += [f"is generation {check.generation}"] if check.generation is not None else []
    parts += [f"is {'' if check.newest else 'not '}the newest"] if check.newest is not None else []
    parts += [f"is {'' if check.one_shot else 'not '}one-shot"] if check.one_shot is not None else []
    return f"the credential of {check.server} {' and '.join(parts)}"


def _texts(contains: str | None, lacks: str | None, *, absent: bool) -> str:
    parts = [f"has {contains!r}"] if contains is not None else []
    parts += [f"lacks {lacks!r}"] if lacks is not None else []
    return "is absent" if absent else " and ".join(parts) or "is there"


def _file(check: model.FileIs) -> str:
    if check.absent:
        return f"{check.path} is absent"
    parts = [f"has {check.contains!r}"] if check.contains is not None else []
    parts += [f"lacks {check.lacks!r}"] if check.lacks is not None else []
    parts += [f"matches {check.matches!r}"] if check.matches is not None else []
    parts += [f"has mode {check.mode:04o}"] if check.mode is not None else []
    return f"{check.path} {' and '.join(parts)}"
