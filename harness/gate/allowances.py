"""The `[[allow]]` entries of mcp-harness.toml: findings that pass, and entries that have outlived their use."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from harness.gate.model import Allowance, Finding, Place, Severity
from harness.gate.rule import COMPARISON_CHECKS, RULES, Asked, Rule
from harness.inputs.settings import Allow, Settings

OF_ALLOWANCES = "nothing to allow: it is about an [[allow]] entry, which is to be removed or changed"
STALE = Rule(
    "MH001",
    Severity.WARNING,
    "an allowance that lets nothing pass",
    why="An [[allow]] entry of mcp-harness.toml matched no finding. Left in the file it would hide the next one.",
    fix="Remove the [[allow]] entry.",
    requirements=(),
    incidents=(),
    not_allowable=OF_ALLOWANCES,
)
EXPIRED = Rule(
    "MH002",
    Severity.WARNING,
    "an allowance whose time is over",
    why="An [[allow]] entry of mcp-harness.toml has passed its `until` date; what it let pass counts again.",
    fix="Fix the finding, or give the entry a new date and reason.",
    requirements=(),
    incidents=(),
    not_allowable=OF_ALLOWANCES,
)
RULES.update({rule.id: rule for rule in (STALE, EXPIRED)})


Elsewhere = Callable[[Sequence[Allow]], Iterable[Finding]]
"""What the rules of some allowances find on the runtimes that a run does not judge."""


def is_about(allow: Allow, finding: Finding) -> bool:
    """Whether an allowance is for this finding."""
    return allow.rule == finding.rule and allow.entry in (None, finding.entry)


def subject(allow: Allow) -> str:
    """What an allowance is for, in words."""
    return f"{allow.rule} {allow.entry or 'on any entry'}"


class AllowanceBook:
    """Applies allowances to findings and remembers which were of use."""

    def __init__(self, settings: Settings, today: datetime.date) -> None:
        self._settings, self._today = settings, today
        self._used: set[int] = set()

    def apply(self, finding: Finding) -> Finding:
        """The finding, marked as allowed where an entry covers it."""
        matching = [index for index, allow in enumerate(self._settings.allow) if is_about(allow, finding)]
        self._used.update(matching)
        valid = [index for index in matching if not self._over(self._settings.allow[index])]
        if not valid:
            return finding
        allow = self._settings.allow[valid[0]]
        until = allow.until.isoformat() if allow.until else None
        return finding._replace(allowance=Allowance(str(self._place(valid[0])), allow.reason, until))

    def leftovers(
        self,
        *,
        whole_catalog: bool,
        judged: frozenset[str],
        altered: frozenset[str] = frozenset(),
        asked: Collection[Asked] = tuple(Asked),
        elsewhere: Elsewhere = lambda _unused: (),
    ) -> Iterator[Finding]:
        """Findings about allowances: over ones always, stale ones only where the run could have used them.

        A rule on changes could have, where the entry was `altered`, one that is not always asked, if it was `asked`.
        What lets something pass `elsewhere` is about a runtime that was not judged.
        """
        unused: list[int] = []
        for index, allow in enumerate(self._settings.allow):
            rule = RULES.get(allow.rule)
            could_use = whole_catalog or allow.entry in judged
            if allow.rule in COMPARISON_CHECKS:
                could_use = allow.entry in altered
            elif rule is not None and rule.asked not in asked:
                could_use = False
            if self._over(allow):
                yield self._finding(EXPIRED, index, f"the allowance for {subject(allow)} ended on {allow.until}")
            elif index not in self._used and could_use:
                unused.append(index)
        allowances = [self._settings.allow[index] for index in unused]
        found = tuple(elsewhere(allowances)) if allowances else ()
        for index, allow in zip(unused, allowances, strict=True):
            if not any(is_about(allow, finding) for finding in found):
                rule = RULES.get(allow.rule)
                why = f" ({rule.not_allowable})" if rule is not None and rule.not_allowable else ""
                yield self._finding(STALE, index, f"the allowance for {subject(allow)} matches no finding{why}")

    def _over(self, allow: Allow) -> bool:
        return allow.until is not None and allow.until < self._today

    def _place(self, index: int) -> Place:
        lines = self._settings.allow_lines
        line = lines[index] if index < len(lines) else 1
        return Place(self._settings.file, line, 1, line, 1, f"/allow/{index}")

    def _finding(self, rule: Rule, index: int, message: str) -> Finding:
        fingerprint = hashlib.sha256(f"{rule.id}\0{message}".encode()).hexdigest()[:16]
        return Finding(rule.id, rule.severity, self._place(index), None, (), message, rule.fix, (), fingerprint)
