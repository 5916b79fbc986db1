"""Old or plausible bugs of the fake npx, and of the isolation that only races over it can show."""

from __future__ import annotations

from fake_servers.npm.arguments import Command
from fake_servers.npm.arguments import install_key as install_key_rule
from fake_servers.npm.registry import split_spec
from fake_servers.npm.tree import tarball as tarball_rule
from harness.reference.npx.layout import isolated_cache as isolated_cache_rule
from harness.reference.npx.layout import shared_cache as shared_cache_rule
from harness.requirements.variants import variant

ARGUMENTS = "fake_servers.npm.arguments"
TREE = "fake_servers.npm.tree"
ISOLATION = "harness.reference.npx.isolation"


@variant(f"{ARGUMENTS}:install_key", catches=("npx-key-by-spec-only",))
def the_fake_hashes_its_whole_command_line(command: Command) -> str:
    """Two servers with other flags never meet in the fake."""
    return install_key_rule(command._replace(specs=command.words))


@variant(f"{ARGUMENTS}:install_key", catches=("npx-key-includes-version-text",))
def the_fake_hashes_package_names(command: Command) -> str:
    """Every version of a package has one tree in the fake."""
    return install_key_rule(command._replace(specs=tuple(split_spec(spec)[0] for spec in command.specs)))


@variant(
    f"{ISOLATION}:planned_cache",
    catches=("npx-pin-two-sessions-disjoint", "npx-isolate-cold-race", "npx-preinstall-no-help-for-npx"),
)
def all_clones_use_the_users_cache(name: str, clone: str, collides: bool) -> str:
    """Leaves every server in the npm directory of the user."""
    return "/home/agent/.npm"


@variant(f"{ISOLATION}:colliding", catches=("npx-isolate-cold-race",))
def nothing_collides(servers: object) -> tuple[str, ...]:
    """Isolates nobody."""
    return ()


@variant(f"{ISOLATION}:planned_cache", catches=("npx-isolate-noncolliding-share",))
def every_server_is_isolated(name: str, clone: str, collides: bool) -> str:
    """Gives each server a cache of its own, so that what two need is fetched twice."""
    return isolated_cache_rule(clone, name)


@variant(f"{ISOLATION}:planned_cache", catches=("npx-pin-two-sessions-disjoint",))
def clones_share_one_cache(name: str, clone: str, collides: bool) -> str:
    """Pins to the directory above the clones."""
    return shared_cache_rule(clone.rpartition("/")[0])


@variant(f"{TREE}:tarball", catches=("npx-preinstall-no-help-for-npx",))
def only_the_trees_move(cache, package):
    """Keeps downloaded tarballs in the user's cache wherever the trees are, so that a preinstall would help."""
    return tarball_rule("/home/agent/.npm", package)
