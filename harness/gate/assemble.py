"""From what the user named to a request of the gate: which catalog, roots, settings, runtimes, base."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import NamedTuple

from fake_runtimes.profile import PINNED, known_profiles
from harness.errors import UserInputError
from harness.gate.context import Context, SecretKnowledge
from harness.gate.engine import Base, GateRequest
from harness.gate.model import Severity
from harness.gate.rule import RULES
from harness.gate.rules import load_rules
from harness.gate.spawn import Runtime, runtime_asked
from harness.inputs.document import Document
from harness.inputs.files import SETTINGS_NAME, display_path, find_upward, folder_in_repository, read_document
from harness.inputs.git import names_file, read_at, resolve
from harness.inputs.limits import MAXIMUM_ENTRIES
from harness.inputs.lists import read_known_secrets, read_secrets, read_tools
from harness.inputs.settings import Settings, read_settings
from harness.reference.selection.zimmer import Instance, default_base_url

CATALOG_NAME = "mcp.json"
ROOTS_NAME = "roots.json"
EVERY_RUNTIME = "all"


class GateOptions(NamedTuple):
    """What the user asked for; None and empty mean: take mcp-harness.toml's value, else the default."""

    catalog: str | None = None
    base: str | None = None
    roots: str | None = None
    runtimes: tuple[str, ...] = ()
    secrets: str | None = None
    known_secrets: str | None = None
    tools: str | None = None
    fail_on: str | None = None
    every_entry: bool = False


class Assembled(NamedTuple):
    """The request and the file that it is about (for `--fix`)."""

    request: GateRequest
    path: Path


def assemble(options: GateOptions, today: datetime.date) -> Assembled:
    """Read everything that a run needs. Raises UserInputError and CannotRunError, each with one line."""
    if options.every_entry and options.base is None:
        raise UserInputError(
            "--all says that untouched entries are judged too, and without --base there is nothing to compare with",
            fix="Add --base, or leave --all out: every entry is judged then.",
        )
    path, settings = _catalog_and_settings(options.catalog)
    document = _objects_only(read_document(path))
    if len(document.tree) > MAXIMUM_ENTRIES:
        raise UserInputError(
            f"holds {len(document.tree):,} entries, more than the limit of {MAXIMUM_ENTRIES:,}",
            file=document.name,
        )
    roots_path = _roots_path(options.roots, settings, path)
    roots = _objects_only(read_document(roots_path, ROOTS_NAME)) if roots_path else None
    where = "--runtime" if options.runtimes else f"{settings.file}: runtimes"
    runtimes, pinned = _runtimes(options.runtimes or settings.runtimes or (), where)
    _check_allowances(settings)
    context = Context(
        document,
        runtimes=runtimes,
        roots_document=roots,
        secrets=_secrets(options, settings),
        tools=read_tools(Path(options.tools)) if options.tools else None,
        instance=_instance(settings.environment),
    )
    base = _base(options.base, path, roots_path, context) if options.base is not None else None
    fail_on = Severity(options.fail_on or settings.fail_on or Severity.ERROR)
    request = GateRequest(
        context,
        base,
        settings,
        pinned,
        fail_on,
        options.every_entry,
        today,
        folder_in_repository(),
        unjudged=_unjudged(settings, runtimes),
    )
    return Assembled(request, path)


def _catalog_and_settings(named: str | None) -> tuple[Path, Settings]:
    beside = Path(named).parent if named is not None else Path()
    found = find_upward(beside, SETTINGS_NAME)
    settings = read_settings(found) if found else Settings()
    if named is not None:
        return Path(named), settings
    if settings.catalog is not None:
        return settings.folder / settings.catalog, settings
    path = find_upward(Path(), CATALOG_NAME)
    if path is None:
        raise UserInputError(
            f"no {CATALOG_NAME} here or above",
            fix=f"Name the catalog: mcp-harness gate path/to/{CATALOG_NAME}",
        )
    return path, settings


def _objects_only(document: Document) -> Document:
    if not isinstance(document.tree, dict):
        kind = {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(
            type(document.tree), "a number"
        )
        raise UserInputError(
            f"holds {kind}, not an object",
            file=document.name,
            line=1,
            column=1,
            fix='Write {"name": {...}, ...}.',
        )
    return document


def _roots_path(named: str | None, settings: Settings, catalog: Path) -> Path | None:
    if named is not None:
        return Path(named)
    if settings.roots is not None:
        return settings.folder / settings.roots
    beside = catalog.parent / ROOTS_NAME
    return beside if beside.is_file() else None


def _check_allowances(settings: Settings) -> None:
    """An allowance for a rule that does not exist would let nothing pass, ever."""
    load_rules()
    for allow, line in zip(settings.allow, settings.allow_lines, strict=False):
        if allow.rule not in RULES:
            raise UserInputError(
                f"there is no rule {allow.rule}",
                file=settings.file,
                line=line,
                fix="mcp-harness explain lists all rules.",
            )


def _runtimes(named: tuple[str, ...], where: str) -> tuple[tuple[Runtime, ...], bool]:
    """The runtimes that were named, or the pinned ones; `where` they were named is for messages."""
    texts = [
        text for name in named or tuple(PINNED) for text in (known_profiles() if name == EVERY_RUNTIME else (name,))
    ]
    runtimes = tuple(dict.fromkeys(runtime_asked(text, where) for text in texts))
    return runtimes, {runtime.profile.name for runtime in runtimes} == set(PINNED.values())


def _unjudged(settings: Settings, judged: tuple[Runtime, ...]) -> tuple[Runtime, ...]:
    """The runtimes that an allowance may be about though this run does not judge them: those of the settings, else
    all that there are. Without an allowance nobody asks, and what the settings name may be unknown here.
    """
    if not settings.allow:
        return ()
    named, _ = _runtimes(settings.runtimes or (EVERY_RUNTIME,), f"{settings.file}: runtimes")
    return tuple(runtime for runtime in named if runtime not in judged)


def _secrets(options: GateOptions, settings: Settings) -> SecretKnowledge:
    if options.secrets is not None:
        values = read_secrets(Path(options.secrets))
        return SecretKnowledge(display_path(Path(options.secrets)), frozenset(values), values)
    path = Path(options.known_secrets) if options.known_secrets is not None else None
    if path is None and settings.known_secrets is not None:
        path = settings.folder / settings.known_secrets
    return SecretKnowledge(display_path(path), read_known_secrets(path)) if path else SecretKnowledge()


def _instance(environment: str) -> Instance:
    return Instance(environment, default_base_url(environment, {}), "marker-instance-key-marker")


def _base(named: str, catalog: Path, roots: Path | None, head: Context) -> Base:
    """The other side: a file of that name if there is one, else the catalog at a git revision."""
    if names_file(named):
        return Base(display_path(Path(named)), _base_context(read_document(Path(named)), head.roots_document, head))
    revision = resolve(named, catalog.resolve().parent)
    content = read_at(revision, catalog)
    document = Document.parse(f"{revision.place}:{head.document.name}", b"{}" if content is None else content)
    roots_content = read_at(revision, roots) if roots else None
    roots_document = (
        Document.parse(f"{revision.place}:{display_path(roots)}", roots_content) if roots and roots_content else None
    )
    return Base(revision.label, _base_context(document, roots_document, head), revision.caution)


def _base_context(document: Document, roots: Document | None, head: Context) -> Context:
    return Context(
        _objects_only(document),
        runtimes=head.runtimes,
        roots_document=_objects_only(roots) if roots else None,
        secrets=head.secrets,
        tools=head.tools,
        instance=head.instance,
    )
