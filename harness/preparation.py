"""The one composition of a whole preparation: AIR's part (the fake program), then Zimmer's own steps.

The gate and the tests use this; what is written for a runtime is decided nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from fake_runtimes import air
from fake_runtimes.air.transforms import placeholder_names
from harness.reference.catalog.catalog import Catalog, read_catalog
from harness.reference.prepare.argv import prepare_argv
from harness.reference.prepare.documents import open_document
from harness.reference.prepare.failures import PreparationError, air_error
from harness.reference.prepare.pipeline import prepare, takes_full_path
from harness.reference.prepare.request import CONFIG_FILES, Prepared, PrepareRequest, Record, Runtime
from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.placeholders import Lookup
from harness.reference.selection.zimmer import Instance, retarget

RUNTIMES: tuple[Runtime, ...] = ("claude", "codex", "pi")
PRODUCTION = Instance("production", "https://zimmer.example.com", "zimmer-api-key")
CLONE = "/clones/example"

Values = Mapping[str, str] | Lookup


class TooDeepError(PreparationError):
    """An entry or file is nested beyond what can be walked."""


class Written(NamedTuple):
    """What a preparation leaves in the clone. `text` is None where no file was written (or left as it
    was).
    """

    path: str
    text: str | None
    prepared: Prepared
    air: air.AirResult | None

    @property
    def servers(self) -> Mapping[str, Any]:
        """The entries of the written file, by name."""
        return self.prepared.servers

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the application log says about this preparation."""
        return self.prepared.warnings


def written_config(
    runtime: Runtime,
    names: Sequence[str],
    catalog_tree: Mapping[str, Any],
    *,
    values: Values,
    clone: str = CLONE,
    files: Mapping[str, str] | None = None,
    instance: Instance = PRODUCTION,
    plugin_servers: Sequence[str] = (),
    default_subagent_roots: Sequence[str] = (),
    earlier: Record | None = None,
    elicitation: Mapping[str, str] | None = None,
    dotenv: Mapping[str, str] | None = None,
    degraded: Mapping[str, str] | None = None,
    other_artifacts: bool = False,
    keeps_local_entries: bool = True,
    codex_adapter: Literal["checked", "real"] = "checked",
) -> Written:
    """The config that `runtime` finds in `clone` when a session with these servers is prepared.

    `catalog_tree` is a parsed mcp.json; only the entries the session needs are looked at. `values` are
    the secrets: a mapping, or a lookup (which may raise StoreUnavailableError). `files` are the clone's
    config texts before. Raises PreparationError, MissingVariableError and what `values` raises; nothing
    else, whatever the entries hold.
    """
    lookup = values.get if isinstance(values, Mapping) else values
    present = {} if files is None else files
    try:
        session = PrepareRequest(
            runtime=runtime,
            clone=clone,
            catalog=needed_catalog(catalog_tree, (*names, *plugin_servers), present.get(CONFIG_FILES[runtime])),
            instance=instance,
            lookup=lookup,
            chosen=tuple(names),
            plugin_servers=tuple(plugin_servers),
            files=present,
            default_subagent_roots=tuple(default_subagent_roots),
            earlier=earlier or Record(),
            elicitation=elicitation or {},
            dotenv=dotenv or {},
            degraded=degraded or {},
            other_artifacts=other_artifacts,
        )
        ran = run_air(session, keeps_local_entries, codex_adapter) if takes_full_path(session) else None
        return finish(session, ran)
    except RecursionError:
        raise TooDeepError("an entry or a local config file is nested too deeply to be prepared") from None


def needed_catalog(tree: Mapping[str, Any], selected: Sequence[str], config_text: str | None) -> Catalog:
    """The catalog as far as one session sees it: all of it where a local file may name further servers."""
    if config_text is not None:
        return read_catalog(tree)
    return read_catalog({name: tree[name] for name in selected if name in tree})


def run_air(
    session: PrepareRequest, keeps_local_entries: bool, codex_adapter: Literal["checked", "real"]
) -> air.AirResult:
    """`air prepare` for the session; raises AIR's refusal as a typed error.

    A local file that cannot be read ends the preparation first: AIR would take it for an empty one. Names
    the catalog does not hold are not passed on, so that one removed id does not cost the session its start.
    """
    open_document(session)
    known = air_input(session)
    argv = prepare_argv(
        session.runtime,
        session.clone,
        chosen=[name for name in session.chosen if name in known],
        plugin_servers=[name for name in session.plugin_servers if name in known],
    )
    result = air.prepare(
        argv,
        known,
        target=session.clone,
        existing=session.files,
        environment=air_environment(session, known),
        manifest=session.earlier.owned,
        keeps_local_entries=keeps_local_entries,
        codex_adapter=codex_adapter,
    )
    if result.exit_code:
        raise air_error(result.stderr)
    return result


def air_input(session: PrepareRequest) -> dict[str, Any]:
    """The entries AIR gets: the session's own, Zimmer's servers already pointed at this instance.

    So a production key is not required elsewhere, by AIR no more than by readiness
    (secrets-retargeted-key-not-required).
    """
    entries = session.catalog.entries
    return {name: retarget(name, entries[name].raw, session.instance) for name in session.selected if name in entries}


def air_environment(session: PrepareRequest, entries: Mapping[str, Any]) -> dict[str, str]:
    """The variables AIR may ask for, through the whole chain; a blank value is not handed over.

    AIR takes an empty value for a value, Zimmer does not (secrets-blank-is-missing).
    """
    texts = [entries, session.config_text or ""]
    found = {name: session.lookup(name) for name in placeholder_names(texts)}
    return {name: value for name, value in found.items() if value is not None and not is_blank(value)}


def completed(session: PrepareRequest, ran: air.AirResult) -> PrepareRequest:
    """The request with AIR's part in it."""
    return replace(session, translated=ran.entries, settings=ran.settings, rewritten=ran.rewritten)


def finish(session: PrepareRequest, ran: air.AirResult | None) -> Written:
    """Zimmer's steps over what AIR translated."""
    request = session if ran is None else completed(session, ran)
    prepared = prepare(request)
    path = CONFIG_FILES[session.runtime]
    text = prepared.writes[0].text if prepared.writes else session.config_text
    return Written(path, text, prepared, ran)
