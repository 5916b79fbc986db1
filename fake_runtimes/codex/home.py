"""Codex reads its configuration from files: the user's, the project's if it is trusted, and the stored credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from fake_runtimes.codex import bugs
from fake_runtimes.codex.arguments import Arguments
from fake_runtimes.codex.config import CONFIG_PATH, SERVERS_KEY, STORE_KEY, layer, read_config
from fake_runtimes.codex.layers import overlay, overrides
from fake_runtimes.codex.strict import refusal
from fake_runtimes.codex.trust import judge
from fake_runtimes.loaded import RUN_KILLED, EntryError, Loaded, LoadedServer, Problem
from fake_runtimes.profile import CodexProfile
from harness.world import World

USER_CONFIG = "config.toml"
CREDENTIALS = ".credentials.json"
KEYRING = "keyring"
PROJECTS_KEY = "projects"
DEFAULT_SANDBOX = "read-only"
DEFAULT_APPROVAL = "never"
LOADING_FAILED = "Error loading config.toml: "
# not measured: what is said of a directory for a run that is none
NO_DIRECTORY = "Error: Not a directory (os error 20)"


class Held(NamedTuple):
    """A run's configuration. `refused` is the text with which it ends before anything starts.

    `tables` are the entries of all servers as merged, those that are switched off among them; `bugs` are those that
    whoever started the program wants.
    """

    home: str
    directory: str
    loaded: Loaded = Loaded()
    sandbox: str = DEFAULT_SANDBOX
    approval: str = DEFAULT_APPROVAL
    store: str = "auto"
    tables: Mapping[str, Any] = {}
    refused: str | None = None
    bugs: bugs.Bugs = bugs.NONE

    @property
    def servers(self) -> tuple[LoadedServer, ...]:
        """The servers in the order of the files."""
        return self.loaded.servers


class UnreadableError(Exception):
    """A configuration file that is there and cannot be used; `text` is what the program says."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def home_directory(variables: Mapping[str, str]) -> str:
    """Where the user's own files are."""
    return variables.get("CODEX_HOME") or f"{variables.get('HOME', '').rstrip('/')}/.codex"


async def read_home(world: World, profile: CodexProfile, arguments: Arguments) -> Held:
    """The configuration of one run. A version may write the user's file here: see `record_trust`."""
    variables = world.env.variables
    home = home_directory(variables)
    directory = world.env.directory
    try:
        if arguments.directory is not None:
            directory = await entered(world, arguments.directory)
        user_text = await read_text(world, f"{home}/{USER_CONFIG}")
        above = overrides(arguments.overrides)
        user = overlay(layer(user_text), above)
        project_text, trusted = await read_project(world, profile, arguments, Place(home, directory, user_text, user))
    except UnreadableError as error:
        return Held(home, directory, refused=error.text)
    except EntryError as error:
        return Held(home, directory, refused=LOADING_FAILED + error.text)
    loaded = read_config(project_text, variables, profile, user_text, trusted=trusted, above=above)
    killed = next((problem.text for problem in loaded.problems if problem.code == RUN_KILLED), None)
    if killed is not None:
        return Held(home, directory, loaded, refused=killed)
    merged = overlay(overlay(user, layer(project_text) if trusted else {}), above)
    return Held(
        home,
        directory,
        loaded,
        sandbox=arguments.sandbox or text_of(merged, "sandbox_mode", DEFAULT_SANDBOX),
        approval=text_of(merged, "approval_policy", DEFAULT_APPROVAL),
        store=text_of(merged, STORE_KEY, "auto"),
        tables=merged.get(SERVERS_KEY, {}),
        refused=refusal(merged, profile) if arguments.strict else None,
    )


async def entered(world: World, path: str) -> str:
    """The real path of the directory that a run is told to work in. Raises UnreadableError."""
    whole = path if path.startswith("/") else f"{world.env.directory.rstrip('/')}/{path}"
    try:
        found = await world.files.resolve(whole)
        there = await world.files.stat(found)
    except OSError as error:
        raise UnreadableError(f"Error: {error.strerror} (os error {error.errno})") from None
    if there is None or there.kind != "directory":
        raise UnreadableError(NO_DIRECTORY)
    return found


class Place(NamedTuple):
    """Where a run looks: the home, the directory it works in, and the user's file as text and as tables."""

    home: str
    directory: str
    user_text: str | None
    user: Mapping[str, Any]


async def read_project(
    world: World, profile: CodexProfile, arguments: Arguments, place: Place
) -> tuple[str | None, bool]:
    """The project's file and whether it counts; the trust of a run on the fly is recorded."""
    root, record = place.directory, trust_record(place.user, place.directory)
    if record is None:
        root = await repository_root(world, place.directory)
        record = trust_record(place.user, root)
    text = await read_text(world, f"{place.directory.rstrip('/')}/{CONFIG_PATH}")
    if text is None and root != place.directory:
        text = await read_text(world, f"{root.rstrip('/')}/{CONFIG_PATH}")
    sandbox = arguments.sandbox or text_of(place.user, "sandbox_mode", DEFAULT_SANDBOX)
    trust = judge(profile, command=arguments.command, record=record, sandbox=sandbox, flag=arguments.trust)
    if trust.persisted:
        with suppress(OSError):  # the run goes on all the same
            await record_trust(world, place)
    return text, trust.used


def trust_record(user: Mapping[str, Any], directory: str) -> str | None:
    """The trust level that the user's file records for a directory."""
    projects = user.get(PROJECTS_KEY)
    project = projects.get(directory) if isinstance(projects, dict) else None
    level = project.get("trust_level") if isinstance(project, dict) else None
    return level if isinstance(level, str) else None


async def repository_root(world: World, directory: str) -> str:
    """The nearest directory upwards that holds `.git`; the directory itself where none does."""
    place = directory.rstrip("/")
    while True:
        if await world.files.stat(f"{place}/.git") is not None:
            return place or "/"
        if not place:
            return directory
        place = place.rpartition("/")[0]


async def record_trust(world: World, place: Place) -> None:
    """Note the directory as trusted at the end of the user's file, which is made where there is none.

    What another run wrote meanwhile is lost: the file is written from the text that this run has read.
    """
    projects = place.user.get(PROJECTS_KEY)
    if isinstance(projects, dict) and place.directory in projects:
        return
    quoted = json.dumps(place.directory, ensure_ascii=False).replace("\x7f", "\\u007f")
    before = place.user_text or ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    if place.user_text is None:
        await world.files.make_directory(place.home)
    text = f'{before}{gap}[{PROJECTS_KEY}.{quoted}]\ntrust_level = "trusted"\n'
    await world.files.write_atomic(f"{place.home}/{USER_CONFIG}", text.encode())


async def read_text(world: World, path: str) -> str | None:
    """A file's text; None where there is none. Raises UnreadableError."""
    try:
        return (await world.files.read(path)).decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise UnreadableError(f"{LOADING_FAILED}stream did not contain valid UTF-8") from None
    except OSError as error:
        raise UnreadableError(f"{LOADING_FAILED}{error.strerror} (os error {error.errno})") from None


async def read_credentials(world: World, held: Held) -> str:
    """The stored credentials' text; empty where the file is absent, cannot be read or is not looked at."""
    if held.store == KEYRING:
        return ""
    try:
        return (await world.files.read(f"{held.home}/{CREDENTIALS}")).decode(errors="replace")
    except OSError:
        return ""


def text_of(tables: Mapping[str, Any], key: str, default: str) -> str:
    """A text of the top level; anything else counts as absent."""
    value = tables.get(key, default)
    return value if isinstance(value, str) else default


def notices(loaded: Loaded) -> tuple[str, ...]:
    """What the run prints about its configuration: everything said of the file as a whole."""
    return tuple(problem.text for problem in loaded.problems if said(problem))


def said(problem: Problem) -> bool:
    """Whether a problem is printed; those of single servers are not."""
    return problem.server is None and problem.code != RUN_KILLED and bool(problem.text)
