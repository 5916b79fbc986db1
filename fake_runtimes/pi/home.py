"""Where Pi's adapter looks: the agent directory and the files of its configuration, read through a world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from fake_runtimes.loaded import Loaded
from fake_runtimes.pi.config import read_config
from fake_runtimes.pi.layers import FILES
from fake_runtimes.pi.variables import AGENT_DIRECTORY, CONFIG_MODE, EXCLUSIVE, OAUTH_DIRECTORY
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import JsonTextError, parse_json
from harness.world.ports import World

DEFAULT_AGENT_DIRECTORY = ".pi/agent"
AGENT_FILE = f"~/{DEFAULT_AGENT_DIRECTORY}/mcp.json"
CONFIG_FLAG = "--mcp-config"


class Home(NamedTuple):
    """The directories of one run, absolute."""

    home: str
    agent: str
    session: str

    def below(self, path: str) -> str:
        """A path as the adapter takes it: `~` is the user's home, a bare one lies in the session's directory."""
        if path == "~" or path.startswith("~/"):
            return f"{self.home}{path[1:]}"
        return path if path.startswith("/") else f"{self.session.rstrip('/')}/{path}"


def home_of(environment: Mapping[str, str], directory: str) -> Home:
    """The directories by the environment of the Pi process."""
    home = environment.get("HOME", "/")
    here = Home(home.rstrip("/"), "", directory)
    return here._replace(agent=here.below(environment.get(AGENT_DIRECTORY) or f"~/{DEFAULT_AGENT_DIRECTORY}"))


def config_paths(home: Home, argv: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The real path of each layer that is read, keyed and ordered as `layers.FILES` names it."""
    paths = {layer: home.below(layer) for layer in FILES}
    paths[AGENT_FILE] = f"{home.agent}/mcp.json"
    if environment.get(CONFIG_MODE) == EXCLUSIVE:
        return {AGENT_FILE: paths[AGENT_FILE]}
    flagged = flag_value(argv, CONFIG_FLAG)
    return paths if flagged is None else {**paths, AGENT_FILE: home.below(flagged)}


def flag_value(argv: Sequence[str], flag: str) -> str | None:
    """The word behind a flag."""
    return next((value for name, value in pairwise(argv) if name == flag), None)


async def load_config(
    world: World, home: Home, argv: Sequence[str], environment: Mapping[str, str], profile: PiProfile
) -> Loaded:
    """What the adapter holds; a lost file is named by its real path."""
    paths = config_paths(home, argv, environment)
    texts: dict[str, str] = {}
    for layer, path in paths.items():
        content = await read_if_there(world, path)
        if content is not None:
            texts[layer] = content
    loaded = read_config(texts, environment, profile)
    problems = tuple(
        problem._replace(text=named_by_path(problem.text, paths)) if problem.server is None else problem
        for problem in loaded.problems
    )
    return loaded._replace(problems=problems)


def named_by_path(text: str, paths: Mapping[str, str]) -> str:
    """The text with the layer's name replaced by the file's path."""
    for layer, path in paths.items():
        text = text.replace(f" from {layer}: ", f" from {path}: ")
    return text


async def read_if_there(world: World, path: str) -> str | None:
    """A file's text; None where nothing can be read."""
    try:
        return (await world.files.read(path)).decode(errors="replace")
    except OSError:
        return None


def oauth_directory(home: Home, environment: Mapping[str, str], settings: Mapping[str, Any]) -> str:
    """Where credentials are handed in: the variable, else the setting, else below the agent directory.

    A path that is not absolute lies in the session's directory; `~` means nothing here.
    """
    setting = settings.get("oauthDir")
    given = environment.get(OAUTH_DIRECTORY, "").strip() or (setting.strip() if isinstance(setting, str) else "")
    if not given:
        return f"{home.agent}/mcp-oauth"
    return given if given.startswith("/") else f"{home.session.rstrip('/')}/{given}"


def kept_entries(text: str | None, version: int, member: str) -> dict[str, Any]:
    """The entries of a file that Pi keeps for itself; none of one that cannot be used or is of another version."""
    try:
        document = parse_json(text or "")
    except JsonTextError:
        return {}
    if not isinstance(document, dict) or document.get("version") != version:
        return {}
    entries = document.get(member)
    return entries if isinstance(entries, dict) else {}
