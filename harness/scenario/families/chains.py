"""A family around token chains: sessions on all runtimes, the scheduled job, people who authorize, what strikes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harness.preparation import RUNTIMES
from harness.scenario import holes
from harness.scenario.draws import Draws
from harness.scenario.families.drafting import Family, draft, without_empty
from harness.scenario.model import Match
from harness.scenario.naming import is_match
from harness.scenario.production import Report
from harness.scenario.reach import Mark, happens
from harness.scenario.trees import Tree

PROVIDERS = ("notion", "well-behaved", "linear", "atlassian", "sentry", "exa", "supabase")
VERSIONS = {"claude": ("claude", "claude@2.1.328"), "codex": ("codex", "codex@0.169.0"), "pi": ("pi",)}
LIVES = (1200, 3600, 3600, 7200)
LEFT = (-300, 30, 240, 700, 1500, 3000)
"""Seconds that a stored token has left: over, within Claude's margin, that of a spawn, that of the job; beyond."""

ANSWERS = (
    "429", "503", "500-html", "403-html", "invalid_grant", "200-html", "200-error", "ok-slow", "ok-truncated",
    "ok-as-503", "ok-without-refresh", "ok-expires-text", "ok-expires-unsaid", "drop-before", "drop-after",
)  # fmt: skip
NETWORK = ("refused", "open-timeout", "reset-before", "reset-after", "tls", "dns")
KILLED_AT = (
    "POST *", "processed POST *", "begin", "commit", "committed", "lock row *", "put row *", "rows of *",
    "read *.credentials.json", "write *.credentials.json", "rename *.credentials.json", "renamed *.credentials.json",
    "lock *", "spawn *",
)  # fmt: skip
MARGIN_SECONDS = 4000
"""After all that goes wrong, before the last sessions start: more than the job needs to find a row."""
FIRST_TICK_SECONDS = 1000
"""From the start of a run to the scheduled job's first run, which goes by the clock."""
PAUSES = (1, 1, 45, 300, 900, FIRST_TICK_SECONDS, FIRST_TICK_SECONDS)
CALL = {"seconds": 2, "calls": [{"server": "tickets", "tool": "find"}]}


def token_chain(seed: int) -> Tree:
    """One or two servers behind an authorization server; sessions come and go while the scheduled job works."""
    draws = Draws("token-chain", seed)
    tree = draft("token-chain", "A token chain survives who renews it", draws.choice("runtime", RUNTIMES))
    life = draws.choice("life", LIVES)
    tree["app_host"] = "zimmer.example.com"
    tree["authorization"] = {"desk-as": authorization(draws, life)}
    tree["credential"] = []
    for name in ("tickets", "notes")[: 1 + draws.chance("second server", 30)]:
        tree["catalog"][name] = {"type": "streamable-http", "url": f"https://{name}.test/mcp"}
        tree["server"][name] = {"protected_by": "desk-as", "tools": ["find"]}
        if draws.chance(f"{name} is known", 90):
            tree["credential"].append(credential(draws, name, life))
    tree["files"] = others(draws, [] if not tree["credential"] else tree["credential"][0]["held_by"], tree["runtime"])
    tree["struck"] = list(tree["catalog"])
    tree["fault"] = faults(draws)
    tree["step"] = [*steps(draws, life), *last_steps(draws, life)]
    if draws.chance("duel", 20):
        duel(tree, draws)
    tree["expect"] = [{"event": "gate.judged", "says": "the check before a spawn looks at the server"}]
    return without_empty(tree)


def authorization(draws: Draws, life: int) -> Tree:
    """How the provider is, and how it answers the first requests for tokens."""
    said = [
        draws.choice(f"answer {number}", ("ok", "ok", *ANSWERS)) for number in range(draws.between("answers", 0, 3))
    ]
    table: Tree = {"provider": draws.choice("provider", PROVIDERS), "set": {"access_seconds": life}}
    return table | ({"answers": {"token": said}, "drawn": True} if said and draws.chance("provider errs", 60) else {})


def credential(draws: Draws, server: str, life: int) -> Tree:
    """What is stored for a server before anything is done."""
    held_by = draws.choice(f"{server} held by", (["orchestrator"], ["orchestrator", "runtime"]))
    left = draws.choice(f"{server} left", [left for left in LEFT if left <= life or draws.chance("shorter lives", 10)])
    return {"server": server, "issued_by": "desk-as", "expires_in_seconds": left, "held_by": held_by}


def others(draws: Draws, held_by: list[str], runtime: str) -> Tree:
    """What stands in the runtimes' stores beside the catalog's servers: an account, servers of other projects, a
    namesake. Where a runtime has a credential already its file is another one.
    """
    files: Tree = {}
    if draws.chance("others", 60):
        claude: Tree = {
            "claudeAiOauth": {"accessToken": "account-access", "refreshToken": "account-refresh"},
            "mcpOAuth": {},
        }
        for number, name in enumerate(("tickets", "elsewhere"), 1):
            url = f"https://{name}.of-another.test/mcp"
            claude["mcpOAuth"][f"{name}|{number:016x}"] = {"serverName": name, "serverUrl": url, "accessToken": "other"}
        codex = {"elsewhere|0000000000000002": {"server_name": "elsewhere", "server_url": "https://elsewhere.test/mcp",
                 "client_id": "other", "access_token": "other", "scopes": []}}  # fmt: skip
        files = {"claude": claude, "codex": codex}
        if "runtime" in held_by:
            files.pop(runtime, None)
    return {f"~/.{family}/.credentials.json": json.dumps(tree) for family, tree in files.items()}


def faults(draws: Draws) -> list[Tree]:
    """A broken request for tokens, and somebody who is killed between any two steps; each if the decisions want it."""
    found: list[Tree] = []
    if draws.chance("network", 50):
        action = draws.choice("network action", NETWORK)
        who = draws.choice("network actor", ("*", "cron", "S"))
        strike = {"action": action, "actor": who, "at": "POST https://desk-as.test/*", "drawn": True}
        found.append(strike | {"times": draws.between("network times", 1, 2)})
    if draws.chance("kill", 50):
        at = draws.choice("kill at", KILLED_AT)
        who = draws.choice("killed", ("S", "cron", "S/*", "S/*"))
        nth = draws.between("kill nth", 1, 4)
        found.append({"action": "kill", "actor": who, "at": at, "nth": nth, "drawn": True, "times": 1})
    if draws.chance("disk", 20):
        action = draws.choice("disk action", ("eacces", "enospc", "torn"))
        at = {"eacces": "read *.credentials.json"}.get(action, "write *.credentials.json")
        found.append({"action": action, "port": "files", "actor": "*", "at": at, "drawn": True, "times": 1})
    return found


def session(draws: Draws, name: str, **more: Any) -> Tree:
    """A start of a session on some runtime, which calls a tool now and then, as long as it lives."""
    runtime = draws.choice(f"{name} version", VERSIONS[draws.choice(f"{name} runtime", RUNTIMES)])
    turns = [{"seconds": draws.choice(f"{name} pause {number}", PAUSES), **calls()} for number in range(2)]
    after = [0, *sorted({draws.between(f"{name} after {number}", 0, 90) for number in range(2)})]
    return {"start": name, "runtime": runtime, "turns": turns, "after_seconds": after, "wait": False, **more}


def calls() -> Tree:
    """One call of the one tool."""
    return {"calls": [{"server": "tickets", "tool": "find"}]}


def steps(draws: Draws, life: int) -> list[Tree]:
    """What is done while things may go wrong."""
    done: list[Tree] = [{"job": "refresh", "seconds": draws.choice("cron works", (2400, 3600)), "wait": False}]
    if draws.chance("second worker", 25):
        done.append({"job": "refresh", "seconds": 2400, "wait": False})
    done.append(session(draws, "S"))
    if draws.chance("second session", 60):
        done += [{"advance": draws.choice("between", (0.5, 20, 400))}, session(draws, "T")]
    if draws.chance("authorize", 30):
        done += [{"advance": draws.choice("before consent", (1, 300))}]
        done += [{"authorize": "tickets", "session": "S", "wait": False}]
    if draws.chance("restart", 40):
        done += [{"advance": draws.choice("before restart", (5, 900))}, {"wait_for": "S"}]
        done += [{"job": "refresh", "seconds": 2400, "wait": False}]
        done += [{"follow_up": "S", "turns": [CALL], "wait": False}]
    if draws.chance("idle", 50):
        done += [{"advance": draws.choice("idle", (life // 2, life + 60, 2 * life))}]
        done += [{"wait_for": "S"}, {"follow_up": "S", "turns": [CALL], "wait": False}]
    return [*done, {"wait_for": "S"}]


def last_steps(draws: Draws, life: int) -> list[Tree]:
    """When nothing goes wrong any more and every token of then is over: a session of each kind."""
    seconds = life + MARGIN_SECONDS
    quiet: list[Tree] = [{"job": "refresh", "seconds": seconds, "wait": False}, {"advance": seconds + 60}]
    runtime = draws.choice("last runtime", RUNTIMES)
    return [*quiet, {"start": "F", "runtime": runtime, "turns": [{"seconds": 5}, CALL]}]


def duel(tree: Tree, draws: Draws) -> None:
    """Claude renews just when the scheduled job comes by: its token has less than its margin left then."""
    for each in tree["credential"][:1]:
        each["expires_in_seconds"] = FIRST_TICK_SECONDS + draws.between("margin", 10, 280)
    tree["authorization"]["desk-as"].pop("answers", None)
    first = next(step for step in tree["step"] if step.get("start") == "S")
    pause = FIRST_TICK_SECONDS - draws.choice("before the job", (1, 1, 2))
    first |= {"runtime": "claude", "after_seconds": [0], "turns": [{"seconds": 1}, {"seconds": pause, **calls()}, CALL]}


# --- rare states


def attempts(**where: Any) -> Callable[[Report], bool]:
    """A run in which somebody presents a token so."""
    return happens("attempt", **where)


def by_a_runtime(family: str) -> Callable[[Report], bool]:
    """A run in which a runtime of that kind renews a token by itself, and is given a new one."""
    match = Match("attempt", f"*/{family}*", {"hole": ""})
    return lambda report: any(is_match(match, each) for each in report.events)


def met(hole: str) -> Callable[[Report], bool]:
    """A run that walks into an accepted hole."""
    return lambda report: hole in report.holes


def waits_for_a_row(report: Report) -> bool:
    """Two processes of the orchestrator have presented tokens of one server within a minute, the second after the first
    was through: one has waited for the other.
    """
    own = [each for each in report.events if each.name in ("attempt", "request") and "/" not in each.actor]
    posts = [each for each in own if each.name == "attempt" or str(each.details.get("at", "")).startswith("POST")]
    return len({each.actor for each in posts if each.name == "attempt"}) > 1


TOKEN_CHAIN = Family(
    "token-chain",
    "a token chain is renewed by whoever can",
    ("#222", "#689"),
    token_chain,
    (
        *(
            Mark(f"renewed-by-{family}", f"{family} renews a token by itself", by_a_runtime(family))
            for family in RUNTIMES
        ),
        Mark("adopted", "the orchestrator takes over what a runtime has renewed", happens("credential.adopted")),
        Mark("renewed-by-cron", "the scheduled job renews", happens("credential.refreshed", "cron*")),
        Mark("renewed-by-spawn", "a spawn renews", happens("credential.refreshed", "[STF]*")),
        Mark("ambiguous", "a refresh may have been processed", happens("credential.refresh_failed", kind="ambiguous")),
        Mark("retryable", "a refresh never left", happens("credential.refresh_failed", kind="retryable")),
        Mark("refused", "a grant is refused", happens("credential.refresh_failed", kind="permanent")),
        Mark("two-renew", "two processes of the orchestrator renew in one run", waits_for_a_row),
        Mark("blocked", "a session waits for a sign-in", happens("session.blocked")),
        Mark("resumed", "it goes on after one", happens("session.resumed")),
        Mark("killed", "somebody is killed between two steps", happens("fault", action="kill")),
        Mark("reused", "a spent token comes to the provider", attempts(hole="?*")),
        *(Mark(f"hole-{hole}", f"a run walks into it: {hole}", met(hole)) for hole in (
            holes.STALE_UNDER_RUNTIME, holes.ANSWER_LOST, holes.NOT_YET_WRITTEN, holes.OTHER_RUNTIME,
        )),
    ),
    (
        "refresh.no_store_is_read",
        "refresh.the_stores_are_read_after_the_request",
        "refresh.the_old_refresh_token_is_kept",
        "refresh.the_transport_asks_again",
        "refresh.an_ambiguous_failure_is_repeated",
        "refresh.an_outage_is_permanent",
        "refresh.rows_are_read_without_their_lock",
        "reconcile.another_pair_is_enough",
        "reconcile.codex_is_left_out_by_name",
        "reconcile.only_the_first_store_is_read",
        "gate_retire.the_row_only_expires",
        "writers.claudes_block_is_replaced_whole",
        "writers.pi_gives_nothing_back",
        "spawn_gate.every_listed_server_is_recorded",
    ),
)  # fmt: skip
