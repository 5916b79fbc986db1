"""Does a server require OAuth, and with which client would a flow go (`check_oauth_requirement`)?

Discovery first; only where that finds nothing, the server itself is asked once, without a token. One answer gives the
verdict, the record and the log line, so that they cannot disagree (requirement-gate-and-record-agree).
"""

from __future__ import annotations

from typing import NamedTuple

from harness.reference.oauth import requirement, transport
from harness.reference.oauth.clients import Client
from harness.reference.oauth.discovery import Discovered, discover, discover_named
from harness.reference.oauth.metadata import resource_metadata_url
from harness.reference.oauth.registration import flow_client
from harness.reference.oauth.requirement import UNDETERMINED, Answer, Determination
from harness.reference.oauth.server import RemoteServer
from harness.reference.oauth.transport import reason
from harness.reference.oauth.urls import read_url
from harness.world import Ambiguous, NotSent, Response, World, header

MAXIMUM_REQUESTS = 15
"""Of one check: discovery, the server, the document that its challenge names, discovery again, one registration.

The forms for paths add up to five for each discovery and two for the document."""
NO_URL = "the server's URL cannot be asked"


class Check(NamedTuple):
    """The verdict. `discovered` may be None where OAuth is required; `client` None where registering one failed.

    `error` is what kept the server from answering; `status` its answer's, where it was asked itself.
    """

    required: bool
    determination: Determination
    discovered: Discovered | None = None
    client: Client | None = None
    error: str | None = None
    status: int | None = None

    @property
    def detail(self) -> str | None:
        """What is recorded beside the determination: never a header, a token or a body."""
        return self.error or (None if self.status is None else f"HTTP {self.status}")


async def check_oauth_requirement(
    world: World,
    server: RemoteServer,
    *,
    configured: Client | None,
    redirect_uri: str,
    registers: bool = True,
    path_forms: bool = False,
) -> Check:
    """Ask a server. Never raises; at most MAXIMUM_REQUESTS requests, none of which carries a credential.

    `registers` False asks for no client where none is configured: whoever only judges throws none away.
    """
    if read_url(server.url) is None:
        return undetermined(NO_URL)
    found = await discover(world, server.url, path_forms=path_forms)
    if found is not None:
        return await required(world, found, None, configured, redirect_uri, registers=registers)
    answer = await ask(world, server.url)
    if not isinstance(answer, Response):
        return undetermined(reason(answer))
    determination = requirement.determination(answer)
    if determination != "advertised_required":
        return Check(required=False, determination=determination, status=answer.status)
    challenged = await discover_challenged(world, server.url, answer, path_forms=path_forms)
    if challenged is None:
        return Check(required=True, determination=determination, status=answer.status)
    return await required(world, challenged, answer.status, configured, redirect_uri, registers=registers)


async def required(
    world: World,
    found: Discovered,
    status: int | None,
    configured: Client | None,
    redirect_uri: str,
    *,
    registers: bool,
) -> Check:
    """The verdict on a server whose authorization server is known."""
    client = await flow_client(world, found, redirect_uri, configured) if registers else configured
    return Check(required=True, determination="advertised_required", discovered=found, client=client, status=status)


async def ask(world: World, url: str) -> Answer:
    """What the server itself answers to one GET without a token, its query kept."""
    try:
        return await transport.get(world, url)
    except (NotSent, Ambiguous) as error:
        return error


async def discover_challenged(
    world: World, url: str, answer: Response, *, path_forms: bool = False
) -> Discovered | None:
    """The authorization server behind a challenge: of the document it names, else of discovery once more."""
    named = resource_metadata_url(header(answer.headers, "WWW-Authenticate"))
    found = None if named is None else await discover_named(world, named, url, path_forms=path_forms)
    return found if found is not None else await discover(world, url, path_forms=path_forms)


async def record_check(world: World, server: RemoteServer, check: Check) -> None:
    """Keep the answer that a check acted on."""
    await requirement.record(world, server.name, server.credential_key, check.determination, check.detail)


def log_line(server: RemoteServer, check: Check) -> str:
    """What a spawn's log says of a check."""
    return requirement.log_line(server.name, check.determination, check.detail)


def undetermined(error: str) -> Check:
    """The check of a server that could not be asked at all."""
    return Check(required=False, determination=UNDETERMINED, error=error)
