"""What a comparison says a change does to whom, and what is to be done before and after merging."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.gate.events import Judged
from harness.gate.model import Change
from scenarios.units.gate_run import REMOTE, STDIO, changes, context_of, events_of, planned

CLAUDE, CODEX, PI = "claude@2.1.268", "codex@0.146.0", "pi@0.84.1+2.32.1"
NO_BYTES = "no runtime's config for it changes"
ROOTS: dict[str, Any] = {"main": {}, "ops": {}}
BEARER = {"headers": {"Authorization": "Bearer ${T}"}}
BY_CHOICE = "by choice only (no root gets it by default); a session that chooses it"
KEY = "a|e1805bd7f95f2c61"
OTHER_URL = {**REMOTE, "url": "https://y.example.com/mcp"}
OTHER_KEY = "a|c11ad1743d0ae7f6"
EVERYWHERE = "claude, codex and pi"
SEED_T = ("before", "seed T in the secret store (or correct its name in the catalog)")
AUTHORIZE = ("before", "tell users of a to authorize at /connectors")
DELETE = ("after", "delete the credentials of a that nothing uses now, at /connectors")


def compared(before: Any, after: Any, **given: Any) -> tuple[Change | None, list[tuple[str, str]]]:
    """The change of entry `a` (None on a side: it is not there) and the plan."""
    sides = [{} if entry is None else {"a": entry} for entry in (before, after)]
    head, base = (
        context_of(sides[1], given.get("roots"), known=given.get("known")),
        context_of(sides[0], given.get("base")),
    )
    events = events_of(head, base)
    return next(iter(changes(events)), None), planned(events)


def sentences(before: Any, after: Any, **given: Any) -> list[str]:
    change, _ = compared(before, after, **given)
    assert change is not None
    return list(change.consequences)


def test_another_url_asks_everyone_to_authorize_again_and_leaves_an_orphan():
    change, plan = compared(REMOTE, OTHER_URL)
    assert change is not None
    assert change.consequences == (
        "url https://x.example.com/mcp -> https://y.example.com/mcp",
        f"stored credential {KEY} -> {OTHER_KEY}: everyone must AUTHORIZE AGAIN (on {EVERYWHERE})",
    )
    assert list(change.config) == [CLAUDE, CODEX, PI]
    assert plan == [AUTHORIZE, DELETE]


def test_a_word_in_a_url_makes_no_plan():
    before = {**STDIO, "url": "https://x/stored key -> unclaimed"}
    assert compared(before, {**STDIO, "url": "https://x/AUTHORIZE"})[1] == []


def test_the_order_of_routine_headers_changes_the_key_and_pi_authorizes_none_of_them():
    one, other = {**REMOTE, "headers": {"X-A": "1", "X-B": "2"}}, {**REMOTE, "headers": {"X-B": "2", "X-A": "1"}}
    order, line = sentences(one, other)
    assert order == "headers: the same ones in another order"
    assert re.fullmatch(
        r"stored credential a\|\w{16} -> a\|\w{16}: everyone must AUTHORIZE AGAIN \(on claude and codex\)", line
    )
    assert compared(one, other)[1] == [AUTHORIZE, DELETE]


def test_a_dropped_routine_header_changes_the_key_and_pi_can_authorize_it_now():
    removed, state, line = sentences({**REMOTE, "headers": {"X-A": "1"}}, REMOTE)
    assert (removed, state) == ("header X-A removed", "pi: fails -> authorize")
    assert line.endswith(f" -> {KEY}: everyone must AUTHORIZE AGAIN (on {EVERYWHERE})")


def test_another_transport_changes_the_key_and_pi_which_stores_by_name_keeps_its_authorization():
    lines = sentences(REMOTE, {**REMOTE, "type": "sse"})
    assert lines[:2] == ["type streamable-http -> sse", "codex: authorize -> fails"]
    assert lines[2].endswith(": everyone must AUTHORIZE AGAIN (on claude; on pi the authorization stays)")
    assert lines[3] == "on codex the config for it does not change"


def test_a_static_credential_replaces_consent_and_its_removal_asks_for_it():
    change, plan = compared(REMOTE, {**REMOTE, **BEARER})
    assert change is not None
    assert change.consequences == (
        'header Authorization added: "Bearer ${T}"',
        f"{EVERYWHERE}: authorize -> starts",
        f"its headers hold a credential now, so that nobody authorizes it; the stored credential {KEY} is used no more",
        "now needs secret T",
    )
    assert plan == [SEED_T, DELETE]
    change, plan = compared({**REMOTE, **BEARER}, REMOTE)
    assert change is not None
    assert change.consequences == (
        "header Authorization removed",
        f"{EVERYWHERE}: starts -> authorize",
        f"works only after a user's authorization now, stored under {KEY}: everyone must AUTHORIZE (on {EVERYWHERE})",
        "no longer needs secret T",
    )
    assert plan == [AUTHORIZE, ("after", "retire secret T: no entry needs it")]
    with_header = sentences({**REMOTE, **BEARER}, {**REMOTE, "headers": {"X-A": "1"}})
    assert with_header[2:4] == ["claude and codex: starts -> authorize", "pi: starts -> fails"]
    assert with_header[4].endswith("everyone must AUTHORIZE (on claude and codex)")


def test_a_server_that_becomes_local_needs_no_consent_any_more():
    change, plan = compared(REMOTE, STDIO)
    assert change is not None
    assert change.consequences == (
        "runs code now: pkg@1.0.0 (npm package)",
        "type streamable-http -> stdio",
        "command (absent) -> npx",
        "args[0] to [1] added: -y pkg@1.0.0",
        "url https://x.example.com/mcp -> (absent)",
        f"{EVERYWHERE}: authorize -> starts",
        f"it is no remote server any more, so that nobody authorizes it; the stored credential {KEY} is used no more",
    )
    assert plan == [DELETE]


@pytest.mark.parametrize(("one", "other"), [("http", "streamable-http"), ("streamable-http", "http")])
def test_the_two_spellings_of_one_transport_change_no_key_and_no_byte(one, other):
    assert compared({**REMOTE, "type": one}, {**REMOTE, "type": other}) == (
        Change("changed", "a", (f"type {one} -> {other}", NO_BYTES), {}),
        [],
    )


@pytest.mark.parametrize("field", ["title", "description"])
def test_what_no_runtime_reads_changes_no_byte(field):
    assert compared(STDIO, {**STDIO, field: "New"}) == (
        Change("changed", "a", (f"{field} (absent) -> New", NO_BYTES), {}),
        [],
    )
    assert compared(STDIO, STDIO) == (None, [])


DEFAULTS = [
    ([], ["main"], ["root main gets it by default now"]),
    ([], ["ops", "main"], ["roots main, ops get it by default now"]),
    (["main"], ["ops"], ["root ops gets it by default now", "new sessions of root main no longer get it"]),
    (["main", "ops"], [], ["new sessions of roots main, ops no longer get it"]),
    (["main"], ["main", "ghost"], ["default_in_roots differs, and the same roots get it by default as before"]),
    (["main"], ["main", "main"], ["default_in_roots differs, and the same roots get it by default as before"]),
]


@pytest.mark.parametrize(("before", "after", "lines"), DEFAULTS)
def test_defaults_that_come_and_go_are_told_by_root(before, after, lines):
    one, other = ({**STDIO, "default_in_roots": roots} for roots in (before, after))
    assert sentences(one, other, roots=ROOTS, base=ROOTS) == [*lines, NO_BYTES]


def test_without_roots_files_the_roots_that_entries_name_are_believed_and_an_empty_file_has_none():
    listed = {**STDIO, "default_in_roots": ["x", "y"]}
    assert sentences(STDIO, listed)[0] == "roots x, y get it by default now"
    assert sentences(STDIO, listed, roots={}, base={})[1:] == [NO_BYTES]
    assert sentences(STDIO, {**STDIO, "default_in_roots": ["main"]}, roots=ROOTS)[0] == (
        "root main gets it by default now"
    )


def test_a_root_that_comes_or_goes_changes_who_gets_an_entry_that_was_not_touched():
    entry = {**STDIO, "default_in_roots": ["ops"]}
    assert compared(entry, entry, roots=ROOTS, base={"main": {}}) == (
        Change("changed", "a", ("root ops gets it by default now",), {}),
        [],
    )
    assert sentences(entry, entry, roots={"main": {}}, base=ROOTS) == ["new sessions of root ops no longer get it"]
    assert compared(entry, entry, roots=ROOTS) == (None, [])  # the base has no roots file yet


BUDGETS = [
    (STDIO, None, 30, [CODEX], "codex"),
    (STDIO, None, 300, [CODEX, PI], "codex and pi"),
    (STDIO, 300, 30, [CODEX, PI], "codex and pi"),
    (STDIO, 20, 30, [CODEX], "codex"),
    (STDIO, None, 180, [], None),
    (STDIO, None, 3, [], None),
    (STDIO, 3, 4, [], None),
    (REMOTE, None, 30, [CODEX], "codex"),
    (REMOTE, None, 300, [CODEX, PI], "codex and pi"),
]


@pytest.mark.parametrize(("entry", "before", "after", "differ", "families"), BUDGETS)
def test_a_budget_reaches_the_files_that_hold_one_and_existing_clones_keep_the_old(
    entry, before, after, differ, families
):
    change, plan = compared(
        entry if before is None else {**entry, "startup_timeout_sec": before}, {**entry, "startup_timeout_sec": after}
    )
    assert change is not None
    assert change.consequences[0] == f"startup_timeout_sec {'(absent)' if before is None else before} -> {after}"
    assert list(change.config) == differ
    sentence = (
        f"sessions that exist already keep the old start-up limit of a on {families} until their config is written anew"
    )
    assert plan == ([("after", sentence)] if families else [])


def test_a_budget_that_only_goes_with_another_transport_is_no_kept_one():
    assert compared(REMOTE, STDIO)[1] == [DELETE]


def test_the_diff_shows_the_lines_of_each_file_with_placeholders_in_place_of_values():
    change, _ = compared({**STDIO, "env": {"T": "${T}"}}, {**STDIO, "env": {"T": "${U}"}})
    assert change is not None
    for diff in change.config.values():
        assert '-    "T": "${T}"' in diff
        assert '+    "T": "${U}"' in diff
        assert "marker" not in diff


OTHER_CODE = [
    (["npx", "-y", "pkg@1.0.0"], ["npx", "-y", "pkg@1.0.1"], "pkg@1.0.0 (npm package) -> pkg@1.0.1 (npm package)"),
    (["npx", "pkg"], ["npx", "-y"], "pkg (npm package) -> npx (program)"),
    (["uvx", "x@1"], ["uvx", "--from", "git+https://g.example.com/e", "x@1"], "x@1 (Python package) -> git+https://g"),
    (["pipx", "run", "x"], ["pipx", "run", "y"], "x (Python package) -> y (Python package)"),
    (["docker", "run", "-i", "x:1"], ["docker", "run", "-i", "e:9"], "x:1 (container image) -> e:9 (container image)"),
    (["npx", "x"], ["uvx", "x"], "x (npm package) -> x (Python package)"),
    (["node", "a.js"], ["node", "b.js"], "a.js (node script) -> b.js (node script)"),
    (["/opt/a"], ["/opt/b"], "/opt/a (program) -> /opt/b (program)"),
    (["npx", "-p", "x", "-p", "y", "run"], ["npx", "-p", "y", "-p", "x", "run"], None),
    (["npx", "pkg@1.0.0"], ["npx", "pkg@1.0.0", "--verbose"], None),
    (["docker", "run", "x:1"], ["docker", "run", "--privileged", "x:1"], None),
]


@pytest.mark.parametrize(("before", "after", "words"), OTHER_CODE)
def test_another_package_or_image_of_any_launcher_is_called_out(before, after, words):
    one, other = ({"type": "stdio", "command": line[0], "args": line[1:]} for line in (before, after))
    lines = sentences(one, other)
    told = [line for line in lines if line.startswith("runs other code")]
    assert len(lines) > len(told)
    assert len(told) == bool(words)
    assert all(line.startswith(f"runs other code: {words}") for line in told)


def test_a_local_server_that_becomes_remote_runs_no_program_any_more():
    assert sentences(STDIO, REMOTE)[0] == "runs no program any more"


def test_a_state_that_changes_is_told_by_runtime_and_version_where_several_are_judged():
    runtimes = ("claude", "pi", "pi@0.86.1+2.36.0")
    header = {**REMOTE, "headers": {"X-Team": "a"}}
    events = events_of(context_of({"a": header}, runtimes=runtimes), context_of({"a": REMOTE}, runtimes=runtimes))
    assert changes(events)[0].consequences[1] == "pi@0.84.1+2.32.1 and pi@0.86.1+2.36.0: authorize -> fails"


def test_secrets_that_come_and_go_are_to_be_seeded_and_retired():
    one, other = {**STDIO, "env": {"A": "${A}", "B": "${B}"}}, {**STDIO, "env": {"A": "${A}", "C": "${C}", "D": "${D}"}}
    change, plan = compared(one, other)
    assert change is not None
    assert change.consequences == (
        "env B removed",
        "env C added: ${C}",
        "env D added: ${D}",
        "now needs secrets C, D",
        "no longer needs secret B",
    )
    assert plan == [
        ("before", "seed C, D in the secret store (or correct their names in the catalog)"),
        ("after", "retire secret B: no entry needs it"),
    ]
    assert compared(one, other, known=["C", "D"])[1] == [("after", "retire secret B: no entry needs it")]
    assert compared(one, other, known=["C"])[1][0] == (
        "before",
        "seed D in the secret store (or correct its name in the catalog)",
    )
    assert compared(one, {**STDIO, "title": "A"})[1] == [("after", "retire secrets A, B: no entry needs them")]


def test_a_secret_that_another_entry_still_needs_is_not_retired():
    needs = {**STDIO, "env": {"A": "${A}"}}
    events = events_of(context_of({"a": STDIO, "b": needs}), context_of({"a": needs, "b": needs}))
    assert changes(events)[0].consequences == ("env A removed", "no longer needs secret A")
    assert planned(events) == []


def test_a_declaration_is_told_and_asks_nobody_to_authorize():
    declared = {**REMOTE, "unavailable": "Broken\nupstream."}
    assert compared(REMOTE, declared) == (
        Change(
            "changed",
            "a",
            (
                "declared unavailable: (not declared) -> Broken upstream.",
                f"{EVERYWHERE}: authorize -> unavailable",
                NO_BYTES,
            ),
            {},
        ),
        [],
    )
    assert sentences(declared, REMOTE)[0] == "declared unavailable: Broken upstream. -> (not declared)"
    moved = compared(REMOTE, {**OTHER_URL, "unavailable": "Broken."})
    assert moved[0] is not None
    assert moved[0].consequences[3] == f"stored credential {KEY} -> {OTHER_KEY}"
    assert moved[1] == [DELETE]
    added, plan = compared(None, declared)
    assert added is not None
    assert added.consequences == (
        "declared unavailable: Broken upstream.",
        f"{BY_CHOICE} starts with a warning and without its tools; later they could reach https://x.example.com/mcp",
    )
    assert plan == []
    assert sentences(None, {**declared, "default_in_roots": ["main"]}, roots=ROOTS)[1] == (
        "root main gets it by default: those sessions start with a warning and without its tools;"
        " later they could reach https://x.example.com/mcp"
    )


def test_an_oauth_block_changes_no_key_and_its_secret_is_not_shown():
    one = {**REMOTE, "oauth": {"clientId": "one", "clientSecret": "s-one", "scopes": ["x"]}}
    other = {**REMOTE, "oauth": {"clientId": "two", "clientSecret": "s-two", "scopes": ["x"]}}
    tail = ": new authorizations use it, stored credentials stay as they are"
    change, plan = compared(one, other)
    assert change is not None
    assert change.consequences[0] == f'oauth clientId "one" -> "two", clientSecret (not shown){tail}'
    assert plan == []
    assert sentences(REMOTE, {**REMOTE, "oauth": {"clientId": "one"}})[0] == f'oauth clientId (absent) -> "one"{tail}'
    assert sentences({**REMOTE, "oauth": {"clientId": "one"}}, {**REMOTE, "oauth": 3})[0] == (
        f'oauth clientId "one" -> (absent){tail}'
    )


REACHES = [
    ({**REMOTE, "url": "https://x.example.com/mcp?key=1"}, "reach https://x.example.com/mcp"),
    (STDIO, "run pkg@1.0.0 (npm package)"),
    ({**STDIO, "args": ["-p", "x", "-p", "y", "z"]}, "run x + y (npm package)"),
    ({**STDIO, "url": "https://x.example.com"}, "run pkg@1.0.0 (npm package)"),
    ({"type": "stdio", "command": "uvx", "args": ["x"]}, "run x (Python package)"),
    ({"type": "stdio", "command": "docker", "args": ["run", "-i", "--rm", "x:1"]}, "run x:1 (container image)"),
    ({"type": "stdio", "command": "node", "args": ["./a.js"]}, "run ./a.js (node script)"),
    ({"type": "stdio", "command": "node", "args": ["-e", "1"]}, "run code in args, for node"),
    ({"type": "stdio", "command": "/opt/x"}, "run /opt/x (program)"),
    ({"type": "stdio"}, "neither reach nor run anything"),
    ("text", "neither reach nor run anything"),
]


@pytest.mark.parametrize(("entry", "reach"), REACHES)
def test_an_added_entry_says_what_an_agent_can_reach_with_it(entry, reach):
    assert sentences(None, entry)[0] == f"{BY_CHOICE} can {reach}"
    if isinstance(entry, dict):
        listed = sentences(None, {**entry, "default_in_roots": ["main", "ops"]}, roots=ROOTS)
        assert listed[0] == f"roots main, ops get it by default: those sessions can now {reach}"


def test_an_added_entry_needs_consent_or_secrets_before_its_first_start():
    change, plan = compared(None, REMOTE)
    assert change is not None
    assert (change.kind, change.consequences[1:]) == (
        "added",
        (f"works only after a user's authorization, once, stored under {KEY}",),
    )
    assert plan == [AUTHORIZE]
    assert sentences(None, {**REMOTE, **BEARER})[1:] == ["needs secret T"]


SSE = {**REMOTE, "type": "sse"}
TRACED = {**REMOTE, "headers": {"X-Trace-Id": "1"}}


@pytest.mark.parametrize(
    ("name", "entry", "runtimes", "is_asked"),
    [
        ("a.b", REMOTE, ["codex"], False),
        ("a.b", REMOTE, ["codex", "pi"], True),
        ("workspace", REMOTE, ["claude"], False),
        ("workspace", REMOTE, ["codex"], True),
        ("a", {**REMOTE, "oauth": {"clientId": 5}}, ["codex"], False),
        ("a", {"type": "streamable-http"}, ["claude", "codex", "pi"], False),
        ("a", SSE, ["codex"], False),
        ("a", SSE, ["claude"], True),
        ("a", TRACED, ["pi"], False),
        ("a", TRACED, ["pi", "codex"], True),
    ],
)
def test_nobody_is_asked_for_consent_where_no_judged_runtime_could_start_the_server_by_it(
    name, entry, runtimes, is_asked
):
    head, nothing = context_of({name: entry}, runtimes=runtimes), context_of({}, runtimes=runtimes)
    other = context_of({name: {**entry, "url": "https://y.example.com/mcp"}}, runtimes=runtimes)
    alone = next(event.judgement for event in events_of(head) if isinstance(event, Judged))
    assert [need.kind for need in alone.needs] == (["consent"] if is_asked else [])
    for base in (nothing, other, context_of({name: STDIO}, runtimes=runtimes)):
        events = events_of(head, base)
        told = " ".join((*changes(events)[0].consequences, *(text for _, text in planned(events))))
        assert bool(re.search("must AUTHORIZE|to authorize|user's authorization", told)) is is_asked, told


def test_a_removed_entry_says_who_loses_it_and_what_it_leaves_behind():
    change, plan = compared({**REMOTE, "default_in_roots": ["main"]}, None, roots=ROOTS, base=ROOTS)
    assert change is not None
    assert change.kind == "removed"
    assert change.consequences == (
        "new sessions of root main no longer get it",
        "sessions that hold it keep its name in their list and lose the server when their config is next written",
        f"nothing uses its stored credential {KEY} any more",
    )
    assert all(diff.startswith("--- before\n+++ after\n") for diff in change.config.values())
    assert plan == [DELETE]
    assert len(sentences(STDIO, None)) == 1


def test_an_entry_that_is_no_object_any_more_is_told_in_words():
    assert sentences(STDIO, "x")[:2] == [
        "runs no program any more",
        "was a server and is no server now: its value is no object",
    ]
    assert sentences("x", STDIO)[1] == "was no server and is a server now: its value is an object"
    assert sentences("x", "y") == [NO_BYTES]


def test_changes_come_in_the_order_of_the_new_catalog_and_removed_ones_last():
    base = {"gone": STDIO, "b": STDIO, "same": STDIO, "a": STDIO}
    head = {"a": REMOTE, "new": STDIO, "same": STDIO, "b": REMOTE}
    order = [(change.kind, change.entry) for change in changes(events_of(context_of(head), context_of(base)))]
    assert order == [("changed", "a"), ("added", "new"), ("changed", "b"), ("removed", "gone")]
