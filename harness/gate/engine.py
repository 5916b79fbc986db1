"""The gate's course: judge each touched entry, ask every rule, compare with the base, give the verdict."""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.gate.allowances import AllowanceBook
from harness.gate.battery.results import Mode, Progress, no_progress
from harness.gate.battery.trial import try_faults
from harness.gate.changes import describe_changes
from harness.gate.context import Context, EntryView
from harness.gate.default_roots import defaults_moved
from harness.gate.events import Event, Finished, Found, Judged, Started
from harness.gate.judge import judge
from harness.gate.model import Finding, Severity
from harness.gate.places import place
from harness.gate.rule import CATALOG_CHECKS, COMPARISON_CHECKS, ENTRY_CHECKS, RULES, Asked, Comparison, Hit
from harness.gate.rules import load_rules
from harness.gate.spawn import Runtime
from harness.inputs.document import Pointer, pointer_text
from harness.inputs.settings import Allow, Settings

_SEED = 0  # nothing is drawn: the battery's spawns are the calmest runs


class Base(NamedTuple):
    """The other side of a comparison; `label` is how reports name it, `caution` as in `Started`."""

    label: str
    context: Context
    caution: str = ""


class GateRequest(NamedTuple):
    """One run. `today` decides which allowances are over; `every_entry` judges untouched ones too.

    `folder`: see `Started`. `battery` says how many faults are tried, `progress` hears of it. `unjudged` are the
    runtimes that an allowance may be about besides.
    """

    context: Context
    base: Base | None
    settings: Settings
    pinned: bool
    fail_on: Severity
    every_entry: bool
    today: datetime.date
    folder: str = ""
    battery: Mode = Mode.OFF
    progress: Progress = no_progress
    unjudged: tuple[Runtime, ...] = ()


def run_gate(request: GateRequest, elapsed_seconds: Callable[[], float]) -> Iterator[Event]:
    """Judge the catalog. The stream begins with Started and ends with Finished."""
    load_rules()
    context, base = request.context, request.base
    touched = _touched(context, base, every_entry=request.every_entry)
    yield Started(
        context.document.name,
        len(context.entries),
        context.roots_document.name if context.roots_document else None,
        len(context.roots),
        tuple(runtime.label for runtime in context.runtimes),
        request.pinned,
        base.label if base else None,
        request.folder,
        request.fail_on,
        base.caution if base else "",
    )
    judgements = {name: judge(view, context, touched=name in touched) for name, view in context.entries.items()}
    yield from map(Judged, judgements.values())
    struck = [name for name in context.entries if name in touched]
    is_off = request.battery is Mode.OFF
    context.trial = None if is_off else try_faults(context, judgements, struck, request.battery, request.progress)
    if base is not None and context.trial is not None:
        hurting = {trouble.entry for trouble in context.trial.troubles}
        known = [name for name in base.context.entries if name in hurting]
        base.context.trial = try_faults(base.context, {}, known, request.battery, no_progress)
    book = AllowanceBook(request.settings, request.today)
    compared = None if request.every_entry else base
    findings = [book.apply(finding) for finding in _findings(context, compared, base, touched, touched)]
    gone = base.context.entries.keys() - context.entries.keys() if base else frozenset()
    findings += book.leftovers(
        whole_catalog=compared is None,
        judged=touched | gone,
        altered=_altered(context, base) | gone,
        asked=tuple(_asked(context)),
        elsewhere=lambda unused: _elsewhere(request, touched, unused),
    )
    yield from map(Found, sorted(findings, key=lambda finding: worst_first(finding, context.document.name)))
    if context.trial is not None:
        yield context.trial.tried
    if base:
        yield from describe_changes(base.context, context)
    yield _finish(request, findings, len(touched), elapsed_seconds())


def _asked(context: Context) -> Iterator[Asked]:
    """The rules that are not asked in every run are asked in this one, by what for."""
    secrets = context.secrets
    yield Asked.ALWAYS
    yield Asked.WITHOUT_NAMES if secrets.names is None else Asked.WITH_NAMES
    yield from [Asked.WITH_VALUES] if secrets.values else []
    yield from [Asked.WITH_TOOLS] if context.tools else []
    yield from [Asked.WITH_FAULTS] if context.trial is not None else []


def worst_first(finding: Finding, catalog: str) -> tuple[int, bool, bool, tuple[int, int], str]:
    """Sort key of findings: by severity, what a change brings, those in the catalog before others, then by place."""
    place = finding.place
    return finding.severity.rank, finding.new is False, place.file != catalog, (place.line, place.column), finding.rule


def _touched(context: Context, base: Base | None, *, every_entry: bool) -> frozenset[str]:
    if base is None or every_entry:
        return frozenset(context.entries)
    moved = frozenset(name for name in context.entries if defaults_moved(name, base.context, context))
    return _altered(context, base) | moved


def _altered(context: Context, base: Base | None) -> frozenset[str]:
    """The entries that read otherwise than in the base, new ones among them; none without a base."""
    if base is None:
        return frozenset()
    return frozenset(name for name, view in context.entries.items() if entry_changed(base.context.tree, name, view.raw))


def entry_changed(base_tree: Mapping[str, object], name: str, raw: object) -> bool:
    """Whether an entry reads otherwise than in the base. Order counts: that of headers is part of a credential key."""
    return name not in base_tree or repr(base_tree[name]) != repr(raw)


def _findings(
    context: Context, compared: Base | None, base: Base | None, touched: frozenset[str], asked: frozenset[str]
) -> Iterator[Finding]:
    """What all rules say, those on entries of the ones that are `asked` for. What `compared` has already is left out;
    rules on changes look at `base`.
    """
    for name, view in context.entries.items():
        if name in asked:
            found = entry_findings(context, view)
            if base is None:
                yield from found
                continue
            before = base.context.entries.get(name)
            old = {finding.fingerprint for finding in entry_findings(base.context, before)} if before and found else ()
            found = [finding._replace(new=finding.fingerprint not in old) for finding in found]
            yield from found
            yield from comparison_findings(base.context, context, view, found)
    known = Known.of(_catalog_wide(base.context) if base else ())
    for said in _catalog_wide(context):
        is_new = not known.holds(said)
        if compared is None or said.entries & touched or is_new:
            yield anchored(said, context, touched)._replace(new=is_new if base else None)


def _elsewhere(request: GateRequest, touched: frozenset[str], unused: Sequence[Allow]) -> Iterator[Finding]:
    """What there is on the runtimes that are not judged, as far as these allowances could be for it."""
    if not request.unjudged:
        return
    context = request.context.on(request.unjudged)
    base = request.base and request.base._replace(context=request.base.context.on(request.unjudged))
    entries = touched if any(allow.entry is None for allow in unused) else touched & {allow.entry for allow in unused}
    if any(RULES[allow.rule].asked is Asked.WITH_FAULTS for allow in unused):
        struck = [name for name in context.entries if name in entries]
        context.trial = try_faults(context, {}, struck, request.battery, no_progress)
    yield from _findings(context, None if request.every_entry else base, base, touched, entries)


def anchored(said: CatalogWide, context: Context, touched: frozenset[str]) -> Finding:
    """The finding at the first of its places whose entry was touched. Its fingerprint stays: it is the same one."""
    pointer = next((anchor for anchor in said.hit.anchors if anchor[0] in touched), None)
    if pointer is None:
        return said.finding
    return said.finding._replace(place=place(context.document, pointer), entry=str(pointer[0]))


def comparison_findings(base: Context, head: Context, view: EntryView, found: list[Finding]) -> Iterator[Finding]:
    """What the rules on changes say of an entry; `found` is what the rules on entries say of it."""
    before = base.entries.get(view.name)
    if before is None or not entry_changed(base.tree, view.name, view.raw):
        return
    comparison = Comparison(base, head, before, view, _explained(head, found))
    for identifier, check in COMPARISON_CHECKS.items():
        for hit in check(comparison):
            yield make_finding(identifier, hit, head)._replace(new=True)


def _explained(head: Context, found: list[Finding]) -> frozenset[str]:
    """The runtimes that an error concerns which the entry did not have before."""
    every = tuple(runtime.label for runtime in head.runtimes)
    errors = [finding for finding in found if finding.severity is Severity.ERROR and finding.new]
    return frozenset(runtime for error in errors for runtime in (error.runtimes or every))


class CatalogWide(NamedTuple):
    """What a rule on the whole catalog found, with the entries that take part in it."""

    finding: Finding
    hit: Hit
    entries: frozenset[str]


def _catalog_wide(context: Context) -> Iterator[CatalogWide]:
    for identifier, check in CATALOG_CHECKS.items():
        for hit in check(context):
            finding = make_finding(identifier, hit, context)
            own = () if finding.entry is None else (finding.entry,)
            yield CatalogWide(finding, hit, frozenset((*own, *hit.others)))


class Known(NamedTuple):
    """What the rules on the whole catalog found in the base: fingerprints, and groups of entries by (rule, subject)."""

    fingerprints: frozenset[str]
    groups: Mapping[tuple[str, str], tuple[frozenset[str], ...]]

    @classmethod
    def of(cls, findings: Iterable[CatalogWide]) -> Known:
        """Take in all findings of the base."""
        fingerprints: set[str] = set()
        groups: dict[tuple[str, str], tuple[frozenset[str], ...]] = {}
        for said in findings:
            fingerprints.add(said.finding.fingerprint)
            if said.hit.others:
                key = said.finding.rule, said.hit.subject
                groups[key] = (*groups.get(key, ()), said.entries)
        return cls(frozenset(fingerprints), groups)

    def holds(self, said: CatalogWide) -> bool:
        """Whether the base had this finding already. A group of entries that has only lost members is no new one."""
        if said.finding.fingerprint in self.fingerprints:
            return True
        groups = self.groups.get((said.finding.rule, said.hit.subject), ())
        return bool(said.entries) and any(said.entries <= group for group in groups)


def entry_findings(context: Context, view: EntryView) -> list[Finding]:
    """What all entry rules say of one entry, without the consequences that another rule covers."""
    found = [
        make_finding(identifier, hit, context)
        for identifier, check in ENTRY_CHECKS.items()
        for hit in check(context, view)
    ]
    return [finding for finding in found if not any(covers(other, finding) for other in found)]


def covers(cause: Finding, finding: Finding) -> bool:
    """Whether a finding only repeats what another one leads to. One on some runtimes speaks for no others."""
    return finding.rule in RULES[cause.rule].covers and (
        not cause.runtimes or set(finding.runtimes) <= set(cause.runtimes)
    )


def identity(hit: Hit) -> Pointer:
    """The pointer as far as it stays when neighbours in a list of names come and go (the subject is the name)."""
    is_list_of_names = isinstance(hit.pointer[-1] if hit.pointer else None, int) and (
        hit.file == "roots" or hit.pointer[1:2] == ("default_in_roots",)
    )
    return hit.pointer[:-1] if is_list_of_names and hit.subject else hit.pointer


def make_finding(identifier: str, hit: Hit, context: Context) -> Finding:
    """The finding of a rule's hit, with its place and a fingerprint that survives edits elsewhere in the file."""
    rule = RULES[identifier]
    document = context.roots_document if hit.file == "roots" and context.roots_document else context.document
    entry = str(hit.pointer[0]) if hit.pointer and document is context.document else None
    source = "\0".join((identifier, hit.file, pointer_text(identity(hit)), hit.subject, *hit.runtimes))
    return Finding(
        rule=identifier,
        severity=hit.severity or rule.severity,
        place=place(document, hit.pointer, at_value=hit.at_value),
        entry=entry if entry in context.entries else None,
        runtimes=hit.runtimes,
        message=hit.message,
        fix=hit.fix or rule.fix,
        edits=hit.edits,
        fingerprint=hashlib.sha256(source.encode("utf-8")).hexdigest()[:16],
        events=hit.events,
        proof=hit.proof,
    )


def _finish(request: GateRequest, findings: list[Finding], judged: int, seconds: float) -> Finished:
    counts = Counter(finding.severity for finding in findings if finding.allowance is None)
    failed = any(severity.rank <= request.fail_on.rank for severity in counts)
    return Finished(
        verdict="FAIL" if failed else "PASS",
        errors=counts[Severity.ERROR],
        warnings=counts[Severity.WARNING],
        notes=counts[Severity.NOTE],
        allowed=sum(finding.allowance is not None for finding in findings),
        judged=judged,
        entries=len(request.context.entries),
        seconds=seconds,
        seed=_SEED,
        exit_code=int(failed),
    )
