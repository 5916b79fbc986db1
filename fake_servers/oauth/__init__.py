"""An OAuth authorization server and the resources it protects, whose differences from good ones are data."""

from fake_servers.oauth.answers import ANSWERS, Answer
from fake_servers.oauth.asking import Received
from fake_servers.oauth.authorization import AuthorizationServer
from fake_servers.oauth.clients import Client
from fake_servers.oauth.profiles import Profile, profile_named, profile_names, provider_named
from fake_servers.oauth.provider import Provider
from fake_servers.oauth.resource import Protected, Resource
from fake_servers.oauth.site import Site
from fake_servers.oauth.tokens import Generation

__all__ = [
    "ANSWERS",
    "Answer",
    "AuthorizationServer",
    "Client",
    "Generation",
    "Profile",
    "Protected",
    "Provider",
    "Received",
    "Resource",
    "Site",
    "profile_named",
    "profile_names",
    "provider_named",
]
