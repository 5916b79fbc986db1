"""Preparing a clone: its files read, AIR's part, Zimmer's steps, and the result written in one piece.

Source: seed 000 "Selection is per session"; requirements prepare-write-atomic, prepare-secret-file-mode,
selection-patch-race-prepare, prepare-transient-retries. The session's list is read once: a PATCH that lands later
counts for the next preparation.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.reference.prepare import pipeline
from harness.reference.prepare.documents import open_document
from harness.reference.prepare.dotenv import read_dotenv
from harness.reference.prepare.failures import RETRY_DELAYS_SECONDS, PreparationError, attempts, classify_error
from harness.reference.prepare.request import CONFIG_FILES, FileWrite, Prepared, PrepareRequest, Record
from harness.reference.secrets.loader import StoreUnavailableError
from harness.reference.secrets.placeholders import MissingVariableError
from harness.reference.selection import session as selection
from harness.reference.session import rows
from harness.reference.session.exclude import exclude
from harness.reference.session.order import Order
from harness.world import World

DOTENV = ".env"
NotPreparedError = (PreparationError, MissingVariableError, StoreUnavailableError)


class PreparedClone(NamedTuple):
    """A clone that is ready for its runtime. `text` is its config file (None: there is none), `dotenv` its `.env`.

    `selected` are the servers whose failure the session cares for: chosen ones and those of its plugins.
    """

    prepared: Prepared
    text: str | None
    dotenv: dict[str, str]
    selected: tuple[str, ...]
    degraded: frozenset[str]

    @property
    def has_mcp(self) -> bool:
        """Whether the runtime gets any server."""
        return bool(self.prepared.servers)


async def prepare_with_retries(world: World, order: Order) -> PreparedClone:
    """`prepare_clone`, tried again while the failure is one that passes. Raises what `NotPreparedError` lists."""
    tried = 0
    while True:
        try:
            return await prepare_clone(world, order)
        except NotPreparedError as error:
            tried += 1
            if tried >= attempts(classify_error(error)):
                raise
        await world.clock.sleep(RETRY_DELAYS_SECONDS[tried - 1])


async def prepare_clone(world: World, order: Order) -> PreparedClone:
    """Write the config for the session as its row stands now. Raises what `NotPreparedError` lists, and OSError."""
    stored = await rows.read(world, order.session)
    request = await request_for(world, order, stored)
    try:
        if pipeline.takes_full_path(request):
            request = await translated(world, order, request)
        prepared = pipeline.prepare(request)
    except RecursionError:
        raise PreparationError("an entry or a local config file is nested too deeply to be prepared") from None
    warnings = await write_out(world, order, request, prepared)
    text = prepared.writes[0].text if prepared.writes else request.config_text
    world.events.emit(
        "session.prepared",
        servers=sorted(prepared.servers),
        file=f"{order.clone}/{CONFIG_FILES[order.runtime]}",
        warnings=[*prepared.warnings, *warnings],
    )
    return PreparedClone(prepared, text, dict(request.dotenv), request.selected, frozenset(request.degraded))


async def request_for(world: World, order: Order, stored: rows.Values) -> PrepareRequest:
    """The request: the order, the session's row and the clone's files."""
    path = CONFIG_FILES[order.runtime]
    config = await text_if_there(world, f"{order.clone}/{path}")
    return PrepareRequest(
        runtime=order.runtime,
        clone=order.clone,
        catalog=order.catalog,
        instance=order.instance,
        lookup=order.lookup,
        chosen=rows.chosen(stored),
        plugin_servers=order.plugin_servers,
        other_artifacts=order.other_artifacts,
        files={} if config is None else {path: config},
        default_subagent_roots=order.default_subagent_roots,
        earlier=rows.record(stored),
        elicitation=order.elicitation,
        dotenv=read_dotenv(await text_if_there(world, f"{order.clone}/{DOTENV}")),
        degraded=rows.degraded(stored),
    )


async def translated(world: World, order: Order, request: PrepareRequest) -> PrepareRequest:
    """The request with AIR's part in it."""
    return await order.air(world, request)


async def text_if_there(world: World, path: str) -> str | None:
    """A file's text; None where there is none."""
    try:
        return (await world.files.read(path)).decode(errors="replace")
    except FileNotFoundError:
        return None


async def write_out(world: World, order: Order, request: PrepareRequest, prepared: Prepared) -> tuple[str, ...]:
    """The files, and the memory of them around: killed anywhere in between, the next preparation sets all right.

    What is about to be written is remembered first, else a server of this run could pass for the repository's own.
    Commits are kept clean before there is a file to keep out of them.
    """
    announced = about_to_own(request, prepared.record)
    if announced != request.earlier:
        await rows.change(world, order.session, lambda values: remembered(values, announced))
    warnings = [await excluded(world, order.clone, path) for path in prepared.excluded]
    for write in prepared.writes:
        await write_file(world, order.clone, write)
    await rows.change(world, order.session, lambda values: remembered(values, prepared.record))
    return tuple(warning for warning in warnings if warning)


def about_to_own(request: PrepareRequest, record: Record) -> Record:
    """The record while the file may hold either state: what was owned, and what only this run brings in."""
    earlier = request.earlier
    new = [name for name in record.owned if name not in earlier.owned]
    if new and request.config_text is not None:
        present = open_document(request).servers
        new = [name for name in new if name not in present]
    return Record((*earlier.owned, *new), tuple(dict.fromkeys((*earlier.injected, *record.injected))))


def remembered(values: rows.Values, record: Record) -> rows.Values:
    """The row with a preparation's record, and with the names that it injected (prepare-injected-recorded)."""
    noted = {**rows.metadata(values), rows.RECORD: {"owned": list(record.owned), "injected": list(record.injected)}}
    custom = {key: kept for key, kept in (values.get("custom_metadata") or {}).items() if key != "injected_mcp_servers"}
    injected = selection.custom_metadata(selection.Session(injected=record.injected))
    return {**rows.with_metadata(values, noted), "custom_metadata": {**custom, **injected}}


async def write_file(world: World, clone: str, write: FileWrite) -> None:
    """A file in one piece: a reader sees the old or the new one, a kill leaves one of them (prepare-write-atomic)."""
    path = f"{clone}/{write.path}"
    await world.files.make_directory(path.rpartition("/")[0])
    await write_whole(world, path, write.text.encode("utf-8", "surrogatepass"), write.mode)


async def write_whole(world: World, path: str, content: bytes, mode: int | None) -> None:
    """Temporary file, then rename."""
    await world.files.write_atomic(path, content, mode=mode)


async def excluded(world: World, clone: str, path: str) -> str:
    """Keep a created file out of commits; the warning where that cannot be written."""
    try:
        await exclude(world, clone, path)
    except OSError as error:
        return f"{path} holds secrets and could not be kept out of commits: {error.strerror}"
    return ""
