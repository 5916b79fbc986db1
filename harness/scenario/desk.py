"""What happens in the orchestrator without a session: a person authorizes a server, the scheduler runs a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from fake_servers.oauth.browser import consent
from harness.reference.catalog.catalog import read_catalog
from harness.reference.credentials.cron import run_refresh_job
from harness.reference.credentials.worker import work
from harness.reference.credentials.writers.claude import write_account
from harness.reference.credentials.writers.registry import registered_writers
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.oauth.web import Answer, OAuthDeps, callback, complete, initiate
from harness.scenario.model import HOME, Authorize, Scenario
from harness.world import World
from harness.world.model import Event

WEB, CRON = "web", "cron"
AUTHORIZES = "step.authorize"
ACTORS = (WEB, CRON)
NOT_DONE = 1
ROTATE_ACCOUNT = "rotate-account"


def settings_of(scenario: Scenario) -> OAuthSettings:
    """The deployment's settings."""
    return OAuthSettings(scenario.app_host, scenario.registered)


class WebJob(NamedTuple):
    """A person in a browser, and the orchestrator's own part of it. `catalog` is the one in force."""

    authorize: Authorize
    catalog: Mapping[str, Any]
    secrets: Mapping[str, str]
    settings: OAuthSettings
    environment: Mapping[str, str]
    clone: str = "/"

    @property
    def actor(self) -> str:
        """What it is called."""
        return WEB


def tabs(events: Iterable[Event]) -> dict[str, tuple[int, Mapping[str, Any]]]:
    """The tabs of a run by their actors: the number of the event by which each was opened, and what that tells.

    Each click opens one, and they are numbered as they were clicked.
    """
    clicks = [(number, event.details) for number, event in enumerate(events) if event.name == AUTHORIZES]
    return {WEB if at == 1 else f"{WEB}#{at}": click for at, click in enumerate(clicks, 1)}


class CronJob(NamedTuple):
    """The scheduler: one run of a job now, or, for so many seconds, each that its schedule or the queue wants."""

    job: str
    seconds: float
    environment: Mapping[str, str]
    clone: str = "/"

    @property
    def actor(self) -> str:
        """What it is called."""
        return CRON


async def run_cron(world: World, job: CronJob) -> int:
    """The job that renews tokens (RefreshMcpOauthTokensJob); or a rotation of the account that Claude is signed in
    with, which is the third writer of one file.
    """
    if job.job == ROTATE_ACCOUNT:
        home = world.env.variables.get("HOME", HOME)
        await write_account(world, f"{home}/.claude", {"accessToken": f"account-{world.entropy.token(16)}"})
        return 0
    writers = registered_writers(world)
    if job.seconds:
        await work(world, writers, until=world.clock.now() + job.seconds)
    else:
        await run_refresh_job(world, writers)
    return 0


async def run_web(world: World, job: WebJob) -> int:
    """The flow to its end, as far as the person goes; 0 when a credential is stored.

    Emits `web.answered` (step, status, page, text) for each answer of the orchestrator.
    """

    deps = OAuthDeps(read_catalog(job.catalog), job.secrets.get, job.settings)
    wanted = job.authorize
    started = await initiate(world, deps, server_name=wanted.server, session=wanted.session, server_url=wanted.url)
    tell(world, "initiate", started)
    link = started.link if started.page == "paste" else started.location
    if link is None or wanted.user != "consents" or started.flow_state is None:
        return NOT_DONE
    if wanted.takes_seconds:
        await world.clock.sleep(wanted.takes_seconds)
    landed = await consent(world, link)
    if landed.url is None:
        world.events.emit("web.answered", step="consent", status=landed.status, page="provider", text=landed.page)
        return NOT_DONE
    code = NOT_DONE
    for _ in range(2 if wanted.repeats else 1):
        answer = await come_back(world, deps, started, landed.url, wanted.pastes)
        code = 0 if answer.page == "redirect" else code
    return code


async def come_back(world: World, deps: OAuthDeps, started: Answer, url: str, pastes: str) -> Answer:
    """The browser comes back by itself, or the person pastes what stands in its address bar."""

    parameters = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    if started.page != "paste":
        answer = await callback(world, deps, parameters)
        tell(world, "callback", answer)
        return answer
    pasted = {"url": url, "code": parameters.get("code", "")}.get(pastes, pastes)
    answer = await complete(world, deps, state=started.flow_state, pasted=pasted)
    tell(world, "complete", answer)
    return answer


def tell(world: World, step: str, answer: Answer) -> None:
    """What the orchestrator answered, without the address that it sends to: that may hold a state."""
    world.events.emit("web.answered", step=step, status=answer.status, page=answer.page, text=answer.message or "")
