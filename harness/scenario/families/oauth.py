"""The family around the way to a stored credential: discovery, registration, consent, exchange, all in their way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.preparation import RUNTIMES
from harness.scenario.draws import Draws
from harness.scenario.families.drafting import Family, draft, without_empty
from harness.scenario.families.oauth_documents import HIDDEN, resource_facts, server_metadata
from harness.scenario.production import Report
from harness.scenario.reach import Mark, happens
from harness.scenario.trees import Tree

SERVER, AUTHORIZATION, NEIGHBOUR = "desk", "desk-as", "neighbour-as"
URL = f"https://{SERVER}.test/mcp"
CLEARTEXT: Mapping[str, str] = {"loopback": "http://127.0.0.1:9155", "afar": "http://afar.test"}
"""Where whatever is sent can be read by others: nobody may send anything there, and who does is seen."""
IN_CLEARTEXT = (*CLEARTEXT.values(), f"http://user:{HIDDEN}@127.0.0.1:9155")
ELSEWHERE = "elsewhere"
"""Where scripted redirects lead."""
PASTED = "http://localhost:3118/callback"
DAY_SECONDS = 86400
REQUESTS_OF_A_TAB = 28
"""Of one click at most: 15 of the check, one consent of 11 pages, two exchanges where a person pastes twice."""


class Door(NamedTuple):
    """A provider, as whose client one comes to it (None: it registers), and whether that leads to a credential."""

    provider: str
    client: Mapping[str, Any] | None = None
    opens: bool = True


SLACK = "1601185624273.8899143856786"
DOORS = (
    Door("well-behaved"),
    Door("well-behaved", {"clientId": "ours"}),
    Door("well-behaved", {"clientId": "ours", "redirectUri": PASTED}),
    Door("notion"),
    Door("linear"),
    Door("sentry"),
    Door("supabase"),
    Door("openid-only"),
    Door("atlassian"),
    Door("slack", {"clientId": SLACK, "redirectUri": PASTED}),
    Door("slack-with-bot", {"clientId": SLACK, "redirectUri": PASTED}),
    Door("github", {"clientId": "Iv1.fake0000github", "clientSecret": "github-client-secret"}),
    Door("hubspot", {"clientId": "fake-hubspot-client", "clientSecret": "hubspot-client-secret"}),
    Door("slack", None, opens=False),
    Door("figma", None, opens=False),
)
OURS = [{"client_id": "ours"}]

ANSWERS: Mapping[str, tuple[str, ...]] = {
    "metadata": (
        "ok", "404", "500", "503-html", "200-html", "200-empty", "200-list", "200-deep", "204", "302", "ok-truncated",
        "ok-created", "wrong-issuer", "drop-before", "drop-after", "ok-slow", "token-endpoint-http",
        "registration-endpoint-http",
    ),
    "register": (
        "ok", "403", "429", "500-html", "200-html", "200-empty", "307", "ok-truncated", "ok-created", "drop-before",
        "drop-after", "ok-slow",
    ),
    "authorize": ("ok", "400-html", "503", "drop-before", "ok-slow"),
    "token": (
        "ok", "ok-without-refresh", "ok-without-expiry", "ok-expires-text", "ok-expires-zero", "ok-expires-huge",
        "ok-expires-nan", "ok-expires-words", "ok-truncated", "ok-as-503", "ok-as-302", "ok-created", "ok-access-blank",
        "ok-refresh-blank", "400", "401", "408", "422", "429", "500", "invalid_grant", "invalid_client", "200-error",
        "200-html", "200-deep", "204", "302", "307", "drop-before", "drop-after", "ok-slow",
    ),
}  # fmt: skip
NETWORK = ("refused", "dns", "tls", "open-timeout", "reset-before", "reset-after", "slow")
SLOW_SECONDS = 45
TAKEN_SECONDS = (60, 3600, DAY_SECONDS - 300, DAY_SECONDS, DAY_SECONDS + 300)
GOOD_PASTES = ("url", "code")
PASTES = (
    *GOOD_PASTES,
    "code",
    "https://x.test/?error=denied",
    "?code=&state=y",
    "x y",
    "%",
    "https://x.test/?code=a&state=b",
)


def oauth_flow(seed: int) -> Tree:
    """One or two tabs that authorize a server of some provider; metadata, answers and the network may be against it."""
    draws = Draws("oauth-flow", seed)
    title = "Whatever a server says of itself, a consent ends in one credential, or in a word why not"
    tree = draft("oauth-flow", title, draws.choice("runtime", RUNTIMES))
    tree |= {"app_host": "zimmer.example.com", "secrets": {"HIDDEN": HIDDEN}, "authorization": {}, "struck": [SERVER]}
    door = draws.choice("door", DOORS)
    add_server(tree, door)
    hostile = add_hostility(tree, draws)
    is_troubled = add_troubles(tree, draws)
    tabs = add_steps(tree, draws)
    tree["expect"] = always(tabs, door)
    if is_refused(hostile, door):
        tree["expect"] += refused()
    elif not any(map(is_in_time, tabs)):
        tree["expect"].append({"received": AUTHORIZATION, "method": "authorization_code", "never": True})
    elif door.opens and not hostile and not is_troubled and all(map(is_finished, tabs)):
        tree["expect"] += opened(tree, tabs)
    return without_empty(tree)


def add_server(tree: Tree, door: Door) -> None:
    """The server, who lets callers into it, and those to whom nothing may come."""
    entry: dict[str, Any] = {"type": "streamable-http", "url": URL}
    facts: dict[str, Any] = {"provider": door.provider}
    if door.client is not None:
        entry["oauth"] = dict(door.client)
        facts |= {"clients": OURS} if door.client["clientId"] == "ours" else {}
    tree["catalog"][SERVER] = entry
    tree["server"][SERVER] = {"protected_by": AUTHORIZATION, "tools": ["find"]}
    tree["authorization"][AUTHORIZATION] = facts
    tree["authorization"] |= {name: {"issuer": issuer} for name, issuer in CLEARTEXT.items()}
    tree["authorization"] |= {ELSEWHERE: {}, NEIGHBOUR: {}}


# --- what is against it


def add_hostility(tree: Tree, draws: Draws) -> str:
    """What metadata says that it should not; the kind of it, empty where it is as it should be."""
    kind = draws.choice("hostile", ("", "", "", "token", "registration", "document", "document", "resource", "foreign"))
    facts = tree["authorization"][AUTHORIZATION]
    if kind in ("token", "registration"):
        where = draws.choice("cleartext", IN_CLEARTEXT)
        facts["set"] = {"metadata": {f"{kind}_endpoint": f"{where}/{'token' if kind == 'token' else 'register'}"}}
    elif kind == "document":
        facts["always"] = {"metadata": {"status": 200, "body": server_metadata(draws, f"https://{AUTHORIZATION}.test")}}
        facts["drawn"] = True
    elif kind in ("resource", "foreign"):
        tree["server"][SERVER]["resource"] = resource_facts(draws, kind, f"https://{NEIGHBOUR}.test")
    return kind


def add_troubles(tree: Tree, draws: Draws) -> bool:
    """Scripted answers and a weak network; whether there are any."""
    scripted = {
        endpoint: [draws.choice(f"{endpoint} answer {each}", names) for each in range(draws.between(endpoint, 1, 3))]
        for endpoint, names in ANSWERS.items()
        if draws.chance(f"{endpoint} is scripted", 20)
    }
    if scripted:
        tree["authorization"][AUTHORIZATION] |= {"answers": scripted, "drawn": True}
    if draws.chance("network", 25):
        action = draws.choice("fault", NETWORK)
        at = draws.choice("where", ("* https://desk.test/*", "* https://desk-as.test/*", "POST *", "GET *.well-known*"))
        strike = {"actor": "web", "action": action, "port": "http", "at": at, "drawn": True}
        strike |= {"seconds": SLOW_SECONDS} if action == "slow" else {}
        tree["fault"] = [strike | {"times": draws.between("strikes", 1, 3)}]
    return bool(scripted) or "fault" in tree


# --- what is done


def add_steps(tree: Tree, draws: Draws) -> list[dict[str, Any]]:
    """A session that waits for its server, and the tabs."""
    turns = [{"seconds": 60}, {"seconds": 5, "calls": [{"server": SERVER, "tool": "find"}]}]
    tree["step"] = [{"start": "S", "turns": turns}] if draws.chance("session first", 70) else []
    has_session = bool(tree["step"])
    tabs = [tab(draws, f"tab {number}", has_session) for number in range(1, draws.between("tabs", 1, 2) + 1)]
    for each in tabs[:-1]:
        each["wait"] = False
    tree["step"] += tabs
    tree["step"].append({"advance": 2 * DAY_SECONDS if any("takes_seconds" in each for each in tabs) else 600})
    if not has_session:
        tree["step"].append({"start": "S", "turns": turns})
    return tabs


def tab(draws: Draws, name: str, has_session: bool) -> dict[str, Any]:
    """A person with a browser, from the session's page or the list of connectors."""
    made: dict[str, Any] = {"authorize": SERVER}
    if has_session and draws.chance(f"{name} is the session's", 60):
        made["session"] = "S"
    if draws.chance(f"{name} walks away", 8):
        made["user"] = "walks-away"
    if draws.chance(f"{name} takes a while", 15):
        made["takes_seconds"] = draws.choice(f"{name} takes", TAKEN_SECONDS)
    if draws.chance(f"{name} repeats", 25):
        made["repeats"] = True
    if draws.chance(f"{name} pastes", 40):
        made["pastes"] = draws.choice(f"{name} pasted", PASTES)
    return made


# --- what must be seen


def always(tabs: list[dict[str, Any]], door: Door) -> list[dict[str, Any]]:
    """Whatever is drawn: nothing goes where others read it, no code is posted twice, and the asking has an end.

    A person whose paste failed may paste again; a callback ends its flow whatever comes of it.
    """
    codes = sum(2 if is_manual(door) and tab.get("repeats") else 1 for tab in tabs)
    nothing = [{"received": name, "method": "POST", "never": True} for name in (*CLEARTEXT, ELSEWHERE)]
    nobody_else = [
        {
            "event": "request",
            "who": who,
            "where": {"at": f"*//{NEIGHBOUR}.test*"},
            "never": True,
            "says": f"{who} asks no authorization server but the first that is named",
        }
        for who in ("web", "S")
    ]
    nobody_else += [
        {
            "event": "request",
            "who": "web",
            "where": {"at": at},
            "never": True,
            "says": f"nothing is sent to {what}",
        }
        for at, what in (
            ("POST http://*", "an address in cleartext"),
            (f"*//{ELSEWHERE}.test*", "where a redirect leads"),
        )
    ]
    return [
        *nothing,
        *nobody_else,
        {"received": AUTHORIZATION, "method": "authorization_code", "at_most": codes},
        {"event": "request", "who": "web", "at_most": len(tabs) * REQUESTS_OF_A_TAB, "says": "the asking has an end"},
    ]


def is_manual(door: Door) -> bool:
    """Whether a person pastes the address."""
    return door.client is not None and "redirectUri" in door.client


def is_refused(hostile: str, door: Door) -> bool:
    """Whether nobody may be asked to consent, whatever else happens."""
    return hostile in ("token", "resource", "foreign") or (hostile == "registration" and door.client is None)


def refused() -> list[dict[str, Any]]:
    """Nobody consents to anything."""
    return [
        {"event": "oauth.started", "never": True},
        {"received": AUTHORIZATION, "method": "authorize", "never": True, "says": "nobody is asked to consent"},
        {"credential": SERVER, "is": "none"},
    ]


def is_in_time(tab: Mapping[str, Any]) -> bool:
    """Whether a person comes back before the flow has expired."""
    return tab.get("user") is None and tab.get("takes_seconds", 0) < DAY_SECONDS


def is_finished(tab: Mapping[str, Any]) -> bool:
    """Whether a person does all that a flow needs."""
    return is_in_time(tab) and tab.get("pastes", "url") in GOOD_PASTES


def opened(tree: Tree, tabs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of tabs that do all they should, one gets through at least; a session that waited for it goes on."""
    expected: list[dict[str, Any]] = [
        {"event": "credential.stored", "where": {"server": SERVER}, "at_least": 1},
        {"event": "oauth.completed", "where": {"server": SERVER}, "at_least": 1},
    ]
    first, *more = tabs
    if not more and "session" in first:
        expected.append({"event": "session.resumed", "where": {"servers": SERVER}, "times": 1})
    at_once = "start" not in tree["step"][0] and "takes_seconds" not in first
    if not more and ("session" in first or at_once):
        expected.append({"event": "tool.call", "where": {"server": SERVER, "ok": True}, "at_least": 1})
    return expected


# --- how far it got


def tabs_race(report: Report) -> bool:
    """A run in which a flow begins while another one is on its way."""
    on_their_way: set[str] = set()
    for event in report.events:
        if event.name == "oauth.started":
            if on_their_way - {event.actor}:
                return True
            on_their_way.add(event.actor)
        elif event.name == "web.answered" and event.details.get("step") in ("callback", "complete", "consent"):
            on_their_way.discard(event.actor)
    return False


OAUTH_FLOW = Family(
    "oauth-flow",
    "a person authorizes a server of some provider, in one or two tabs",
    ("#64", "#309"),
    oauth_flow,
    (
        Mark("code-exchanged", "a code is exchanged", happens("oauth.completed")),
        Mark("pasted", "a pasted address completes a flow", happens("web.answered", step="complete", status=302)),
        Mark("exchange-failed", "an exchange fails", happens("oauth.failed")),
        Mark(
            "registration-refused",
            "nobody is registered",
            happens("oauth.refused", text="Dynamic Client Registration failed*"),
        ),
        Mark(
            "cleartext-refused", "an endpoint without https is refused", happens("oauth.refused", text="*is not https*")
        ),
        Mark(
            "metadata-hostile",
            "metadata leads nowhere that a person could go",
            happens("oauth.refused", text="Could not determine OAuth endpoints*"),
        ),
        Mark("tabs-raced", "a flow begins while another one is on its way", tabs_race),
        Mark("flow-expired", "somebody comes back too late", happens("web.answered", text="OAuth flow has expired*")),
        Mark(
            "flow-gone", "somebody comes back twice, or to a replaced flow", happens("web.answered", text="*not found*")
        ),
        Mark("session-resumed", "a session goes on by itself", happens("session.resumed")),
        Mark("network-broken", "the network fails somebody", happens("fault", who="web")),
        *(Mark(f"on-{name}", f"a session runs on {name}", happens("spawn", child=f"*/{name}")) for name in RUNTIMES),
    ),
    (
        "oauth_authorize.http_will_do",
        "https_transport.registration_is_not_guarded",
        "https_transport.redirects_are_followed",
        "https_transport.the_whole_endpoint_is_shown",
        "oauth_flow.a_flow_is_read_and_deleted_later",
        "oauth_flow.no_flow_expires",
        "oauth_discovery.every_listed_server_is_tried",
    ),
)
