"""The preparation of one clone for one runtime: steps in a fixed order, then one whole file or nothing.

Source: seed 000 "Timeouts and caching", "Selection is per session"; the order is prepare-step-order. Every step
takes a draft and gives a new one; nothing that was handed in is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.reference.npx.isolation import directory_clashes, pin_caches
from harness.reference.prepare import budgets, seeding
from harness.reference.prepare.documents import Document, open_document, write_document
from harness.reference.prepare.elicitation import with_elicitation
from harness.reference.prepare.forwarding import inline_known
from harness.reference.prepare.names import name_refusal
from harness.reference.prepare.request import CONFIG_FILES, Prepared, PrepareRequest, Record, Runtime
from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.interpolator import resolve_servers
from harness.reference.secrets.placeholders import Lookup, MissingVariableError, variables
from harness.reference.selection.zimmer import (
    SELF_SESSION,
    ZIMMER,
    inject,
    injected_entry,
    is_zimmer_name,
    retarget,
    variable_prefix,
)


@dataclass(frozen=True, slots=True)
class Draft:
    """The servers as they stand after a step; `owned` are the names that come from the catalog."""

    servers: dict[str, Any]
    owned: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def prepare(request: PrepareRequest) -> Prepared:
    """The runtime's config for a session, or the error that ends the preparation before any agent runs.

    Raises MalformedConfigError, MissingVariableError and what the lookup raises (StoreUnavailableError).
    """
    document = open_document(request)
    draft = Draft({}, warnings=document.warnings)
    steps: list[str] = []
    for step in step_order(request.runtime):
        draft = run_step(step, draft, document, request)
        steps.append(step)
        if step == "inject_self_session" and leaves_file_alone(draft, document, request):
            return untouched(document, tuple(steps))
    return finished(draft, document, request, (*steps, "write"))


def step_order(runtime: Runtime) -> tuple[str, ...]:
    """The steps before the write. The last two can be told apart by nobody."""
    return (
        "read",
        *(("seed",) if runtime == "pi" else ()),
        "inject_subagent_server",
        "inject_self_session",
        "retarget",
        "elicitation",
        "resolve_secrets",
        "pin_npx_caches",
        "startup_budgets",
    )


def run_step(step: str, draft: Draft, document: Document, request: PrepareRequest) -> Draft:
    """The draft after one step."""
    match step:
        case "read":
            return read(draft, document, request)
        case "seed":
            return seed(draft, request)
        case "inject_subagent_server":
            return inject_only(ZIMMER, draft, request)
        case "inject_self_session":
            return inject_only(SELF_SESSION, draft, request)
        case "retarget":
            return retarget_all(draft, request)
        case "elicitation":
            return add_elicitation(draft, request)
        case "resolve_secrets":
            return resolve_secrets(draft, request)
        case "pin_npx_caches":
            return pin_npx_caches(draft, request)
        case _:
            return add_budgets(draft, request)


def read(draft: Draft, document: Document, request: PrepareRequest) -> Draft:
    """The file's servers without what only earlier preparations put there, and AIR's entries merged around
    them.
    """
    gone = left_over(request)
    present = {
        name: seeding.transformed(entry, request.rewritten.get(name))
        for name, entry in document.servers.items()
        if name not in gone
    }
    if request.runtime == "pi":
        return replace(draft, servers=present)
    sources = seeding.from_air(request.selected, request.translated, request.catalog)
    return adopt(replace(draft, servers=present), sources, request, overwrites=True)


def left_over(request: PrepareRequest) -> tuple[str, ...]:
    """Names of earlier preparations that go: servers no longer selected, and injections, which are decided
    anew.

    An injection must not count as the repository's own, or the second preparation would report none.
    """
    unselected = (name for name in request.earlier.owned if name not in request.selected)
    return (*unselected, *request.earlier.injected)


def seed(draft: Draft, request: PrepareRequest) -> Draft:
    """Pi: AIR writes nothing, so the selected servers come from the catalog."""
    return adopt(draft, seeding.seed(request.selected, request.catalog), request, overwrites=False)


def adopt(draft: Draft, sources: seeding.Sources, request: PrepareRequest, *, overwrites: bool) -> Draft:
    """The draft with catalog entries merged in, and the names it owns from now on."""
    owned_before = request.earlier.owned
    servers = seeding.merge(draft.servers, sources.entries, owned_before, overwrites=overwrites)
    owned = tuple(name for name in sources.entries if overwrites or name not in draft.servers or name in owned_before)
    return replace(draft, servers=servers, owned=owned, warnings=draft.warnings + sources.warnings)


def inject_only(name: str, draft: Draft, request: PrepareRequest) -> Draft:
    """The draft with the injected server of this name, if the session gets it; it goes last
    (prepare-inject-*).

    The entry is made here and not looked up: a catalog's copy of the name is replaced.
    """
    existing = {server: entry_url(entry) for server, entry in draft.servers.items()}
    url = inject(existing, request.default_subagent_roots, request.instance.base_url).get(name)
    if url is None:
        return draft
    others = {server: entry for server, entry in draft.servers.items() if server != name}
    made = injected_entry(request.runtime, url, request.instance.api_key)
    owned = tuple(server for server in draft.owned if server != name)
    return replace(draft, servers={**others, name: made}, owned=owned, injected=(*draft.injected, name))


def entry_url(entry: Any) -> str | None:
    """A server's URL; None for a stdio entry and for what is no entry."""
    url = entry.get("url") if isinstance(entry, Mapping) else None
    return url if isinstance(url, str) else None


def leaves_file_alone(draft: Draft, document: Document, request: PrepareRequest) -> bool:
    """The baseline path: with nothing selected and nothing injected the file stays, unresolved names and all.

    A server of an earlier selection still has to go (selection-removed-stays-removed), and an entry of the
    repository's own that points at another instance still has to move (selection-staging-never-production).
    """
    if takes_full_path(request) or draft.injected or points_elsewhere(draft, request):
        return False
    return not any(name in document.servers for name in request.earlier.owned)


def points_elsewhere(draft: Draft, request: PrepareRequest) -> bool:
    """Does a Zimmer entry lead to another instance than the one that prepares?"""
    return any(retargeted(name, entry, request) != entry for name, entry in draft.servers.items())


def takes_full_path(request: PrepareRequest) -> bool:
    """Is anything selected: servers, skills, hooks or plugins (prepare-path-choice)?"""
    return bool(request.selected) or request.other_artifacts


def retarget_all(draft: Draft, request: PrepareRequest) -> Draft:
    """Every Zimmer entry points at this instance, the repository's own ones included
    (prepare-retarget-zimmer).
    """
    servers = {name: retargeted(name, entry, request) for name, entry in draft.servers.items()}
    return replace(draft, servers=servers, warnings=draft.warnings + blank_key_warnings(draft, request))


def retargeted(name: str, entry: Any, request: PrepareRequest) -> Any:
    """One entry retargeted; on Codex the key goes to the header table that Codex reads."""
    if not is_zimmer_name(name) or not isinstance(entry, Mapping):
        return entry
    shaped = {**entry, "http_headers": entry.get("http_headers", {})} if request.runtime == "codex" else entry
    moved = retarget(name, shaped, request.instance)
    return entry if moved == shaped else moved


def blank_key_warnings(draft: Draft, request: PrepareRequest) -> tuple[str, ...]:
    """A blank key is written all the same, but said (prepare-retarget-blank-key-warns)."""
    instance = request.instance
    zimmer = [name for name, entry in draft.servers.items() if is_zimmer_name(name) and entry_url(entry)]
    written = draft.injected if instance.production else tuple(zimmer)
    if not written or not is_blank(instance.api_key):
        return ()
    variable = f"{variable_prefix(instance.environment)}_API_KEY"
    return (f"Writing {', '.join(written)} with a blank API key: {variable} is not set, every call will fail",)


def add_elicitation(draft: Draft, request: PrepareRequest) -> Draft:
    """The elicitation variables in every stdio entry's env."""
    if not request.elicitation:
        return draft
    servers = {
        name: with_elicitation(entry, request.elicitation, request.dotenv) for name, entry in draft.servers.items()
    }
    return replace(draft, servers=servers)


def resolve_secrets(draft: Draft, request: PrepareRequest) -> Draft:
    """Every placeholder of every entry joined with its value, or MissingVariableError: one broken entry
    fails all.

    The repository's own entries are walked too. Injected ones hold values already.
    """
    require_variables(draft, request)
    walked = {name: entry for name, entry in draft.servers.items() if name not in draft.injected}
    resolved = resolve_servers(walked, request.lookup)
    if request.runtime == "codex":
        resolved = {name: inline(entry, request.lookup) for name, entry in resolved.items()}
    return replace(draft, servers={**draft.servers, **resolved})


def require_variables(draft: Draft, request: PrepareRequest) -> None:
    """Zimmer's own check, on every runtime: each variable that a catalog entry of the session requires has
    a value.

    AIR's adapter may have turned a placeholder into a name that is forwarded, where nothing would miss it
    (secrets-fail-all-runtimes). Raises MissingVariableError.
    """
    for name in draft.owned:
        declared = retarget(name, seeding.declared_entry(request.catalog, name), request.instance)
        for variable in variables(declared).required:
            if is_blank(request.lookup(variable)):
                raise MissingVariableError(variable)


def inline(entry: Any, lookup: Lookup) -> Any:
    """Codex: forwarded names that are known become values."""
    return inline_known(entry, lookup) if isinstance(entry, Mapping) else entry


def pin_npx_caches(draft: Draft, request: PrepareRequest) -> Draft:
    """NPM_CONFIG_CACHE in every npx entry; after the secrets, so that a path is never taken for a
    placeholder.
    """
    pinned = pin_caches(draft.servers, request.clone)
    return replace(draft, servers=pinned, warnings=draft.warnings + directory_clashes(draft.servers))


def add_budgets(draft: Draft, request: PrepareRequest) -> Draft:
    """Startup budgets in the runtime's idiom; Claude's is a variable of its process and not in the file."""
    servers = {name: with_budget(name, entry, request) for name, entry in draft.servers.items()}
    return replace(draft, servers=servers)


def with_budget(name: str, entry: Any, request: PrepareRequest) -> Any:
    """One entry with its budget; what is no table is given back as it is
    (prepare-non-table-entry-skipped).
    """
    if request.runtime == "claude":
        return entry
    declared = seeding.declared_entry(request.catalog, name).get("startup_timeout_sec")
    if request.runtime == "codex":
        return budgets.codex_table(entry, declared)
    return budgets.pi_entry(entry, declared)


def finished(draft: Draft, document: Document, request: PrepareRequest, steps: tuple[str, ...]) -> Prepared:
    """The whole file as one write, and what the session remembers of this run."""
    written = write_document(document, draft.servers, {*draft.owned, *draft.injected}, request)
    path = CONFIG_FILES[request.runtime]
    return Prepared(
        writes=(written.write,),
        servers=written.servers,
        injected=draft.injected,
        local=tuple(n for n in written.servers if n not in draft.owned and n not in draft.injected),
        record=Record(tuple(name for name in draft.owned if name in written.servers), draft.injected),
        warnings=draft.warnings + written.warnings + reserved_warnings(written.servers, request.runtime),
        steps=steps,
        excluded=(path,) if document.text is None else (),
    )


def untouched(document: Document, steps: tuple[str, ...]) -> Prepared:
    """Nothing selected, nothing injected: no file is written (prepare-baseline-noop)."""
    names = tuple(document.servers)
    return Prepared((), document.servers, (), names, Record(), document.warnings, steps)


def reserved_warnings(servers: Mapping[str, Any], runtime: Runtime) -> tuple[str, ...]:
    """Names that Claude keeps for itself and does not load (prepare-claude-reserved-names)."""
    if runtime != "claude":
        return ()
    refused = ((name, name_refusal(runtime, name)) for name in servers)
    return tuple(f"Claude does not load MCP server '{name}': {why}" for name, why in refused if why)
