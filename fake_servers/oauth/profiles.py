"""Providers by name: what is reported of a real one, or a shape of a good one, as a data file in `providers/`.

A file holds the tables `provider`, `resource`, `behaviour` (of the MCP server behind it) and `clients`, whose keys are
the fields of Provider, Resource, Behaviour and Client; what is left out is as in a good one. TOML has no null: `inf` is
a time without end, and `metadata_without` lists the fields that metadata lacks. `like` names the profile from which
a file takes every key that it does not hold itself.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from fake_servers.mcp import Behaviour, HttpServer
from fake_servers.mcp.behaviour import from_table as behaviour_from
from fake_servers.oauth.answers import Answer
from fake_servers.oauth.authorization import AuthorizationServer
from fake_servers.oauth.clients import Client
from fake_servers.oauth.provider import Provider, require_known
from fake_servers.oauth.resource import Protected, Resource
from fake_servers.oauth.site import Server, Site
from harness.world.sites import origin

SUFFIX = ".toml"
TABLES = ("provider", "resource", "behaviour")
KEYS = ("like", "about", "issuer", "well_behaved", *TABLES, "clients")
KINDS: Mapping[type, str] = {str: "a text", bool: "true or false", tuple: "a list", dict: "a table"}
WITHOUT = "metadata_without"
MCP_PATH = "/mcp"
Made = TypeVar("Made", Provider, Resource, Client)


class Profile(NamedTuple):
    """One provider: its authorization server, and the MCP server that it protects.

    `issuer` and the resource's `url` are URLs, whose origins are the same where one server is both. `clients` are
    registered from the start. `well_behaved` tells that any client which follows the standards completes the flow.
    """

    name: str
    about: str
    issuer: str
    well_behaved: bool = False
    provider: Provider = Provider()
    resource: Resource = Resource()
    behaviour: Behaviour = Behaviour()
    clients: tuple[Client, ...] = ()

    @property
    def is_one_origin(self) -> bool:
        """Whether the authorization server is at the origin of what it protects."""
        return origin(self.issuer) == origin(self.resource.url)

    def moved(self, issuer: str, resource: str) -> Profile:
        """The same provider at other origins, the paths kept; an empty one is whatever origin is asked."""
        places = [
            f"{there}{urlsplit(url).path}" for there, url in ((issuer, self.issuer), (resource, self.resource.url))
        ]
        return self._replace(issuer=places[0], resource=self.resource._replace(url=places[1]))

    def stage(self, server: Server | None = None, *, token_answers: tuple[str | Answer, ...] = ()) -> Stage:
        """Servers that behave so; behind the door is `server`, or one that this profile describes."""
        authorization = AuthorizationServer(
            self.issuer, self.provider, clients=self.clients, name=self.name, token_answers=token_answers
        )
        behind = HttpServer(self.behaviour) if server is None else server
        return Stage(self, authorization, Protected(behind, authorization, self.resource))


class Stage(NamedTuple):
    """The servers of one provider."""

    profile: Profile
    authorization: AuthorizationServer
    protected: Protected

    @property
    def servers(self) -> dict[str, Server]:
        """By origin, as a simulation and a mount take them."""
        if self.profile.is_one_origin:
            return {origin(self.profile.issuer): self.site}
        return {origin(self.profile.issuer): self.authorization, origin(self.profile.resource.url): self.protected}

    @property
    def site(self) -> Site:
        """Both at one origin."""
        return Site(self.authorization, self.protected)


def provider_named(name: str) -> Provider:
    """The authorization server of a profile. Raises ValueError for a name that there is not."""
    return profile_named(name).provider


@cache
def profile_named(name: str) -> Profile:
    """A profile. Raises ValueError for a name that there is not, or for a file that cannot be meant."""
    return read_profile(name, profile_text(name))


def profile_text(name: str) -> str:
    """A profile's data file. Raises ValueError for a name that there is not."""
    if name not in profile_names():
        raise ValueError(f"no provider is called {name!r}; there are {', '.join(profile_names())}")
    return files("fake_servers.oauth").joinpath("providers", f"{name}{SUFFIX}").read_text("utf-8")


@cache
def profile_names() -> tuple[str, ...]:
    """The names of all profiles, sorted."""
    there = (entry.name for entry in files("fake_servers.oauth").joinpath("providers").iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in there if name.endswith(SUFFIX)))


def good_names() -> tuple[str, ...]:
    """Those of them that are well-behaved."""
    return tuple(name for name in profile_names() if profile_named(name).well_behaved)


def read_profile(name: str, text: str) -> Profile:
    """The profile that a data file holds. Raises ValueError that names the key which is wrong."""
    table = completed(tomllib.loads(text))
    unknown = sorted(set(table) - set(KEYS))
    if unknown:
        raise ValueError(f"{name}: a profile has no {unknown[0]!r}")
    for key in ("about", "issuer"):
        if not isinstance(table.get(key), str):
            raise ValueError(f"{name}: {key} must be a text")  # noqa: TRY004 - a file that cannot be meant
    provider = filled(Provider, table.get("provider", {}), f"{name}: provider")
    require_known(provider)
    resource = filled(Resource, table.get("resource", {}), f"{name}: resource")
    if not resource.url:
        resource = resource._replace(url=f"{origin(table['issuer'])}{MCP_PATH}")
    return Profile(
        name,
        table["about"],
        table["issuer"],
        bool(table.get("well_behaved", False)),
        provider,
        resource,
        behaviour_from(table.get("behaviour", {})),
        tuple(filled(Client, each, f"{name}: clients") for each in table.get("clients", ())),
    )


def completed(table: Mapping[str, Any]) -> dict[str, Any]:
    """A file's tables with what it takes from the profile that it is `like`."""
    if "like" not in table:
        return dict(table)
    base = completed(tomllib.loads(profile_text(table["like"])))
    merged = {key: {**base.get(key, {}), **table.get(key, {})} for key in TABLES}
    return {**base, **table, **merged}


def filled(kind: Callable[..., Made], table: Mapping[str, Any], what: str) -> Made:
    """A record of a table of its fields. Raises ValueError."""
    usual: Mapping[str, Any] = {"client_id": "", **getattr(kind, "_field_defaults")}  # noqa: B009 - of all three kinds
    given = {key: value for key, value in table.items() if key != WITHOUT}
    fields = {key: typed(value, usual, key, what) for key, value in given.items()}
    if WITHOUT in table:
        fields["metadata"] = {**fields.get("metadata", {}), **dict.fromkeys(table[WITHOUT])}
    try:
        return kind(**fields)
    except TypeError as error:
        raise ValueError(f"{what}: {error}") from error


def typed(value: object, usual: Mapping[str, Any], key: str, what: str) -> Any:
    """A value as the field holds it. Raises ValueError for a key or a type that it has not."""
    if key not in usual:
        raise ValueError(f"{what} has no {key!r}")
    default = usual[key]
    if isinstance(value, list):
        value = tuple(value)
    if value == math.inf:
        return None
    if default is None and isinstance(value, str | tuple):
        return value
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        kind = KINDS.get(type(value), "a number")  # the value itself may be a secret
        raise ValueError(f"{what}: {key} must be of the kind of {default!r}, not {kind}")
    return value
