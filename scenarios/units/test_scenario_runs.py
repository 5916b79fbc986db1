"""Scenarios as they are played: steps, faults, holds, expectations, invariants, verdicts."""

from __future__ import annotations

import gc

import pytest

from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.timeline import CALM, clock, timeline
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict, worst
from harness.world.model import Listed, Replayed, Seeded
from scenarios.playing import HEAD, SESSION, names, played, short

RUNTIMES = ("claude", "claude@2.1.328", "codex", "codex@0.169.0", "pi", "pi@0.86.1+2.36.0")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_calm_session_connects_and_calls(runtime):
    report = played(
        "[[expect]]\nexit = 0",
        "[[expect]]\nrequest = 2\noffers = ['a/echo', 'b']\nlacks = []",
        "[[expect]]\nserver = 'b'\nis = 'connected'",
        "[[expect]]\nevent = 'tool.call'\nwhere = { server = 'a', ok = true }\ntimes = 1",
        "[[expect]]\nreceived = 'b'\nmethod = 'initialize'\ntimes = 1",
        "[[expect]]\ninvariant = 'only-struck-servers-fail'",
        "[[expect]]\ninvariant = 'no-orphans'",
        runtime=runtime,
    )
    assert report.verdict is Verdict.PASS, report.failures
    assert report.steps < 250


EXPECTATIONS = [
    ("exit = 1", "it exits 0"),
    ("exit = 0\nrun = 2", "there is no run 2: it has 1"),
    ("server = 'a'\nis = 'failed'", "it is connected"),
    ("server = 'a'\nis = 'connected'\ntext = '*x*'", "it says"),
    ("request = 1\nlacks = ['a']", "offers a"),
    ("request = 1\npending = ['a']", "a is not pending"),
    ("request = 1\nbetween = [3, 4]", "leaves at"),
    ("request = 3", "no such request"),
    ("event = 'tool.call'\nnever = true", "it happens 1x"),
    ("event = 'download'", "it happens 0x"),
    ("event = 'tool.call'\nbetween = [0, 1]", "it happens at"),
    ("event = 'tool.call'\nbefore = { event = 'session.prepared' }", "session.prepared comes first"),
    ("event = 'tool.call'\nbefore = { event = 'download' }", "never happens"),
    ("event = 'tool.call'\nwho = 'codex'", "it happens 0x"),
    ("file = 'nothing'\ncontains = 'x'", "nothing is there"),
    ("file = '~/.zimmer'\nabsent = true", "it is there"),
    ("file = '.mcp.json'\ncontains = 'x y z'", "it does not"),
    ("file = '.mcp.json'\nlacks = 'mcpServers'", "it has it"),
    ("file = '.mcp.json'\nmatches = '^x'", "it does not"),
    ("file = '.mcp.json'\nmode = 0o644", "its mode is 0600"),
    ("received = 'b'\nnever = true", "x"),
    ("row = 'sessions/S'\ncontains = 'degraded'", "mcp_servers"),
    ("row = 'sessions/S'\nabsent = true", "it is there"),
    ("output = 'stdout'\nlacks = 'session'", "it has it"),
    ("output = 'stderr'\ncontains = 'x y z'", "it"),
    ("invariant = 'no-secret-shown'", "nothing put it to the test"),
]  # fmt: skip


@pytest.mark.parametrize(("expectation", "instead"), EXPECTATIONS)
def test_an_expectation_that_is_not_met_says_what_was_seen(expectation, instead):
    report = played(f"[[expect]]\n{expectation}")
    assert report.verdict is Verdict.FAIL
    (judged,) = report.judged
    assert instead in judged.seen.instead
    assert judged.expectation.says in report.failures[0]


def test_an_expectation_that_warns_lets_the_run_pass_with_a_warning():
    assert played("[[expect]]\nexit = 1\nwarns = true").verdict is Verdict.WARN
    assert Verdict.WARN.exit_code == 0


def test_an_expectation_after_a_step_sees_the_world_of_that_moment():
    report = played(
        "[[step]]\nname = 'early'\nwrite = 'note'\ntext = 'x'",
        "[[expect]]\nfile = 'note'\ncontains = 'x'\nafter = 'early'",
        "[[expect]]\nfile = 'note'\nabsent = true",
        "[[expect]]\nevent = 'server.connected'\nnever = true\nafter = 1",
        session=f"{SESSION}\n[[step]]\nremove = 'note'",
    )
    assert report.verdict is Verdict.PASS, report.failures


def test_a_step_and_an_expectation_may_be_for_one_runtime_alone():
    parts = (
        "[[step]]\nwrite = 'note'\ntext = 'x'\nonly_on = ['codex']",
        "[[expect]]\nfile = 'note'\ncontains = 'x'\nonly_on = ['codex@0.146.0']",
        "[[expect]]\nfile = 'note'\nabsent = true\nonly_on = ['claude', 'pi', 'codex@0.169.0']",
    )
    assert [len(played(*parts, runtime=name).judged) for name in ("claude", "codex", "codex@0.169.0")] == [1, 1, 1]
    assert played(*parts, runtime="claude").verdict is Verdict.PASS
    assert played(*parts, runtime="codex").verdict is Verdict.PASS
    assert played(*parts, runtime="codex@0.169.0").verdict is Verdict.FAIL


def test_an_edit_of_the_catalog_reaches_the_next_run_only():
    report = played(
        session=f"{SESSION}\n[[step]]\nedit = 'a'\nset = {{ startup_timeout_sec = 300 }}\n"
        "[[step]]\nstart = 'T'\n[[step]]\nedit = 'a'\ndelete = true\n[[step]]\nstart = 'U'\n"
        "[[expect]]\nsession = 'S'\nfile = '.codex/config.toml'\ncontains = 'startup_timeout_sec = 180'\n"
        "[[expect]]\nsession = 'T'\nfile = '.codex/config.toml'\ncontains = 'startup_timeout_sec = 300'\n"
        "[[expect]]\nsession = 'U'\nfile = '.codex/config.toml'\nlacks = 'mcp_servers.a]'\n",
        runtime="codex",
    )
    assert report.verdict is Verdict.PASS, report.failures


def test_a_follow_up_runs_in_the_same_clone_with_the_same_servers():
    report = played(
        session=SESSION.replace("start = 'S'", "")
        + "servers = ['a']\n[[step]]\nfollow_up = 'S'\n"
        + "[[expect]]\nexit = 0\nrun = 2\n[[expect]]\nrequest = 1\nrun = 2\noffers = ['a']\nlacks = ['b']"
    )
    assert report.verdict is Verdict.PASS, report.failures
    assert {event.actor for event in report.events if event.name == "model.request"} == {"S/claude", "S#2/claude"}


def test_a_root_brings_its_default_servers():
    head = HEAD.replace('command = "/opt/a"', 'command = "/opt/a"\ndefault_in_roots = ["r"]')
    text = short("[roots.r]\n[[expect]]\nrequest = 1\noffers = ['a']\nlacks = ['b']", session="", head=head)
    report = play(read_scenario(f"{text}\n[[step]]\nstart = 'S'\nroot = 'r'"), "codex")
    assert report.verdict is Verdict.PASS, report.failures


FAULTS = [
    ("server = 'b'\naction = 'refused'", "b", "failed"),
    ("server = 'b'\naction = 'dns'", "b", "failed"),
    ("server = 'b'\naction = 'reset-before'", "b", "failed"),
    ("server = 'b'\naction = 'reset-after'", "b", "failed"),
    ("server = 'b'\naction = 'answer'\nstatus = 403", "b", "needs-auth"),
    ("server = 'b'\naction = 'answer-after'\nstatus = 500\nbody = 'boom'", "b", "failed"),
    ("server = 'b'\naction = 'slow'\nseconds = 2.5", "b", "connected"),
    ("server = 'a'\naction = 'enoent'", "a", "failed"),
    ("server = 'a'\naction = 'eacces-exec'", "a", "failed"),
    ("server = 'a'\naction = 'kill'\nat = 'stdin'\nnth = 1", "a", "failed"),
]


@pytest.mark.parametrize(("fault", "server", "state"), FAULTS)
def test_a_fault_strikes_the_server_that_it_names_and_no_other(fault, server, state):
    other = {"a": "b", "b": "a"}[server]
    report = played(
        f"[[fault]]\n{fault}",
        f"[[expect]]\nserver = '{server}'\nis = '{state}'",
        f"[[expect]]\nserver = '{other}'\nis = 'connected'",
        "[[expect]]\ninvariant = 'only-struck-servers-fail'",
    )
    assert report.verdict is Verdict.PASS, (report.failures, report.detail)
    assert names(report, "fault")


def test_a_server_that_breaks_its_connections_needs_no_fault():
    report = played("[server.b]\ndrops = 'after'", "[[expect]]\nserver = 'b'\nis = 'failed'")
    assert report.verdict is Verdict.PASS, report.failures


def test_a_plan_without_faults_gives_the_same_trace_as_no_plan():
    never = "[[fault]]\naction = 'refused'\nserver = 'b'\nafter_seconds = 900\ndrawn = true"
    assert played().trace_digest == played(never).trace_digest


HOLD = """
[[hold]]
actor = "claude"
at = "spawn /opt/a"
until = { event = "server.connected", where = { server = "b" } }
"""


def test_a_hold_keeps_its_actor_until_the_event():
    report = played(
        HOLD, "[[expect]]\nevent = 'spawn'\nwhere = { argv = '/opt/a' }\n[expect.before]\nevent = 'download'\n"
    )  # fmt: skip
    order = [(event.name, event.details.get("server") or event.details.get("argv")) for event in report.events]
    assert order.index(("server.connected", "b")) < order.index(("spawn", ["/opt/a"]))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (HOLD.replace("spawn /opt/a", "spawn /opt/other"), "the race did not take place"),
        (HOLD.replace('"server.connected"', '"server.failed"') + "limit_seconds = 1", "the race did not take place"),
        ("[[fault]]\naction = 'refused'\nat = 'POST https://other.test/*'", "struck nowhere"),
        ("[[step]]\nkill = 'a'", "met nobody"),
    ],
)
def test_a_run_in_which_something_did_not_take_place_is_untestable(part, words):
    report = played(part)
    assert report.verdict is Verdict.UNTESTABLE
    assert words in report.detail


def test_a_kill_ends_everybody_of_that_name():
    start = "[[step]]\nstart = 'S'\nwait = false\nturns = [{ seconds = 60 }]\n[[step]]\nadvance = 10\n"
    report = played(
        session=f"{start}[[step]]\nkill = 'claude'\nsignal = 'SIGTERM'\n[[expect]]\nexit = -15\n"
        "[[expect]]\nevent = 'session.ended'\nbetween = [10, 10]"
    )
    assert report.verdict is Verdict.PASS, report.failures


def test_what_never_comes_is_a_timeout_or_a_deadlock():
    start = "[[step]]\nstart = 'S'\nwait = false\n"
    wait = "[[step]]\nwait_for = { event = 'download' }\n"
    assert played(session=f"{start}{wait}limit_seconds = 50").verdict is Verdict.TIMEOUT
    assert played(session=f"{start}{wait}").verdict is Verdict.DEADLOCK


def test_a_session_that_cannot_be_prepared_says_so():
    head = HEAD.replace('command = "/opt/a"', 'command = "/opt/a"\nenv = { K = "${MISSING}" }')
    text = short("[[expect]]\nevent = 'session.failed'\nwhere = { text = '*MISSING*' }", head=head)
    report = play(read_scenario(text), "claude")
    assert report.verdict is Verdict.PASS, report.failures
    assert not names(report, "spawn")


SECRET_HEAD = HEAD.replace('command = "/opt/a"', 'command = "/opt/a"\nenv = { K = "${KEY}" }')


def test_a_secret_in_what_the_runtime_prints_is_found():
    """Claude copies a server's stderr into its log."""
    parts = "[secrets]\nKEY = 's3cret-value-of-a'", "[[expect]]\ninvariant = 'no-secret-shown'"
    assert play(read_scenario(short(*parts, head=SECRET_HEAD)), "claude").verdict is Verdict.PASS
    leaking = "[server.a]\nstderr = ['started with s3cret-value-of-a']"
    report = play(read_scenario(short(*parts, leaking, head=SECRET_HEAD)), "claude")
    assert report.verdict is Verdict.FAIL
    (finding,) = [each for each in report.invariants if each.name == "no-secret-shown"]
    assert "KEY" in finding.detail
    assert "s3cret" not in finding.detail


@pytest.mark.parametrize(("runtime", "file"), [("claude", ".mcp.json"), ("codex", "config.toml"), ("pi", ".mcp.json")])
def test_what_a_killed_session_leaves_of_a_file_that_is_made_for_secrets_shows_none(runtime, file):
    secret = "[secrets]\nKEY = 's3cret-value-of-a'"
    kill = f"[[fault]]\naction = 'kill'\nactor = 'S'\nat = 'rename */{file}'"
    report = play(read_scenario(short(secret, kill, head=SECRET_HEAD)), runtime, keeps_files=True)
    (left,) = [path for path in report.files if path.endswith(".tmp")]
    assert f"/{file}." in left
    assert [each.holds for each in report.invariants if each.name == "no-secret-shown"] == [True]


def test_two_installs_in_one_tree_break_an_invariant():
    npx = '\n[catalog.n]\ntype = "stdio"\ncommand = "npx"\nargs = ["-y", "p@1.0.0"]\n'
    steps = "[[step]]\nstart = 'S'\nclone = '/c'\nwait = false\n[[step]]\nstart = 'T'\nclone = '/c'\n"
    report = play(read_scenario(short(head=HEAD + npx, session=steps)), "codex")
    (finding,) = [each for each in report.invariants if each.name == "installs-never-share-a-tree"]
    assert finding.holds is False
    assert report.verdict is Verdict.FAIL


def test_a_left_process_is_an_orphan_unless_the_version_was_measured_to_leave_it():
    stays = "[server.a]\ninitialize = 'never'\nignores_stdin_end = true\nignores_signals = true"
    report = played(stays, runtime="claude", session="[[step]]\nstart = 'S'")
    assert names(report, "left.behind")
    assert report.verdict is Verdict.PASS, report.failures


def test_a_process_that_outlives_a_killed_runtime_breaks_an_invariant():
    start = "[[step]]\nstart = 'S'\nwait = false\nturns = [{ seconds = 60 }]\n[[step]]\nadvance = 10\n"
    stays = "[server.a]\nignores_stdin_end = true"
    for server, holds in ((stays, False), ("", True)):
        report = played(server, session=f"{start}[[step]]\nkill = 'S/codex'", runtime="codex")
        (finding,) = [each for each in report.invariants if each.name == "no-orphans"]
        assert finding.holds is holds


@pytest.mark.parametrize(("signal", "holds"), [("SIGKILL", True), ("SIGTERM", False)])
def test_a_runtime_at_work_is_no_orphan_of_a_session_that_could_not_end_it(signal, holds):
    start = "[[step]]\nstart = 'S'\nwait = false\nturns = [{ seconds = 600 }]\n[[step]]\nadvance = 10\n"
    report = played(session=f"{start}[[step]]\nkill = 'S'\nsignal = '{signal}'", runtime="codex")
    assert {each["actor"] for each in names(report, "left.behind")} == {"S/codex", "S/codex/a"}
    (finding,) = [each for each in report.invariants if each.name == "no-orphans"]
    assert finding.holds is holds


def test_what_a_killed_session_s_runtime_leaves_when_it_is_done_is_an_orphan():
    start = "[[step]]\nstart = 'S'\nwait = false\nturns = [{ seconds = 60 }]\n[[step]]\nadvance = 10\n"
    stays = "[server.a]\nignores_stdin_end = true\nignores_signals = true"
    killed = f"{start}[[step]]\nkill = 'S'\n[[step]]\nadvance = 600"
    report = played(stays, session=killed, runtime="codex")
    assert {each["actor"] for each in names(report, "left.behind")} == {"S/codex/a"}
    (finding,) = [each for each in report.invariants if each.name == "no-orphans"]
    assert finding.holds is False


CLICKED_BEFORE_IT_RUNS = """schema = 1
id = "clicked-before-it-runs"
title = "A person authorizes from the page of a session that has not started yet, while another one's runtime renews"
runtime = "claude"
app_host = "zimmer.example.com"
[catalog.tickets]
type = "streamable-http"
url = "https://tickets.test/mcp"
[authorization]
desk-as = { set = { access_seconds = 7200 } }
[[credential]]
server = "tickets"
issued_by = "desk-as"
expires_in_seconds = 30
held_by = ["orchestrator", "runtime"]
[server.tickets]
protected_by = "desk-as"
[[fault]]
action = "dns"
actor = "*"
at = "POST https://desk-as.test/token"
times = 1
[[step]]
start = "S"
runtime = "codex"
after_seconds = [13]
wait = false
[[step]]
start = "T"
runtime = "codex"
[[step]]
authorize = "tickets"
session = "S"
[[step]]
advance = 60
"""


def test_a_click_before_the_first_start_looks_where_the_runtime_of_its_session_will():
    report = play(read_scenario(CLICKED_BEFORE_IT_RUNS), "claude")
    assert report.verdict is Verdict.PASS, report.failures
    (adopted,) = names(report, "credential.adopted")
    assert adopted["runtime"] == "codex"
    assert {each["runtime"] for each in names(report, "credential.injected")} == {"codex"}


def test_an_install_into_the_users_own_cache_breaks_an_invariant():
    npx = '\n[catalog.n]\ntype = "stdio"\ncommand = "npx"\nargs = ["-y", "p@1.0.0"]\n'
    scenario = read_scenario(short(head=HEAD + npx))
    for variant, holds in ((find_variant("prepare.claude_alone_is_pinned"), False), (None, True)):
        with in_place(variant):
            report = play(scenario, "codex")
        (finding,) = [each for each in report.invariants if each.name == "user-npm-untouched"]
        assert finding.holds is holds
    (untested,) = [each for each in play(scenario, "pi").invariants if each.name == "user-npm-untouched"]
    assert untested.holds is None


def test_a_server_that_fails_unprovoked_breaks_an_invariant():
    """A repository's own entry leads to a program that is not there: nobody said that it would fail."""
    own = '[[step]]\nwrite = \'.mcp.json\'\ntext = \'{"mcpServers": {"own": {"command": "/opt/own"}}}\''
    report = played(own)
    (finding,) = [each for each in report.invariants if each.name == "only-struck-servers-fail"]
    assert (finding.holds, finding.detail.partition(":")[0]) == (False, "own fails, unprovoked")
    assert report.events[finding.events[0]].details["server"] == "own"
    text = short(own, head=HEAD.replace("title = ", 'struck = ["own"]\ntitle = '))
    assert play(read_scenario(text), "claude").verdict is Verdict.PASS


def test_only_what_the_catalog_names_can_be_reached_or_started():
    head = HEAD.replace("https://b.test/mcp", "https://b.test:444/mcp")
    files = '[files]\n\'.mcp.json\' = \'\'\'{"mcpServers": {"x": {"type": "http", "url": "https://elsewhere.test"}, '
    files += '"y": {"command": "/bin/sh"}}}\'\'\'\n'
    text = short(files, "[[expect]]\nserver = 'b'\nis = 'connected'", head=head)
    report = play(read_scenario(text), "claude")
    assert report.judged[0].seen.met
    stranger = play(
        read_scenario(short("[[step]]\nwrite = '.mcp.json'\ntext = '''" + files.split("'''")[1] + "'''")), "claude"
    )
    failed = {details["server"]: details["text"] for details in names(stranger, "server.failed")}
    assert "ENOTFOUND" in failed["x"]
    assert "ENOENT" in failed["y"]


def test_a_stored_token_is_sent_on_every_runtime():
    parts = (
        "[server.b]\nrequires_bearer = ['the-access-token']",
        "[[credential]]\nserver = 'b'\naccess_token = 'the-access-token'\nexpires_in_seconds = 3600",
        "[[expect]]\nserver = 'b'\nis = 'connected'",
        "[[expect]]\ninvariant = 'no-secret-shown'",
    )
    for runtime in RUNTIMES:
        report = played(*parts, runtime=runtime)
        assert report.verdict is Verdict.PASS, (runtime, report.failures)


def test_recorded_decisions_replay_the_run_and_diverge_where_the_scenario_has_changed():
    scenario = read_scenario(short())
    drawn = play(scenario, "codex", Seeded(3))
    replayed = play(scenario, "codex", Replayed(drawn.decisions, complete=True))
    assert (replayed.trace_digest, replayed.verdict) == (drawn.trace_digest, drawn.verdict)
    other = play(scenario, "claude", Replayed(drawn.decisions, complete=True))
    assert other.verdict is Verdict.DIVERGENCE
    assert "recorded" in other.detail


def test_a_list_of_zeros_is_the_calmest_run():
    scenario = read_scenario(short())
    assert play(scenario, "pi", Listed([0] * 20)).trace_digest == play(scenario, "pi").trace_digest


def test_the_timeline_ends_with_the_expectations_and_one_line_that_says_it_all():
    report = played("[[expect]]\nexit = 0", "[[old_bug]]\nname = 'npx.walks_the_shared_root_only'\nshows = 'it breaks'")
    lines = timeline(report, real_seconds=0.0012, order=CALM, exit_code=0)
    assert lines[0].endswith('"A short one"')
    assert any(line.startswith("   00:00.0   claude            starts a: /opt/a") for line in lines)
    assert any(line.startswith("  expect  exits 0 ...") and line.endswith(" pass") for line in lines)
    assert lines[-2].startswith("  old bug: mcp-harness run scenario.toml --runtime claude@2.1.268 --variant npx.walks")
    assert lines[-2].endswith("   (it breaks)")
    assert lines[-1].startswith("PASS  short on claude@2.1.268: 1/1 expectations; ")
    assert lines[-1].endswith("s simulated in 1.2 ms; tier model; calmest order; exit 0")


def test_verdicts_have_the_exit_codes_of_commands():
    assert [verdict.exit_code for verdict in Verdict] == [0, 0, 0, 1, 1, 1, 1, 1, 1, 4]
    assert worst([Verdict.PASS, Verdict.FAIL, Verdict.WARN]) is Verdict.FAIL
    assert worst([]) is Verdict.PASS


def test_a_scenario_is_not_applicable_to_a_runtime_that_it_does_not_name():
    text = short().replace('["claude", "codex", "pi"]', '"codex"')
    assert play(read_scenario(text), "pi").verdict is Verdict.NOT_APPLICABLE
    assert play(read_scenario(text), "codex@0.169.0").verdict is Verdict.PASS


def story(report):
    """The timeline's lines."""
    return "\n".join(timeline(report, real_seconds=None, order=CALM, exit_code=0))


def test_untestable_wins_over_what_was_seen_and_each_reason_is_a_line():
    report = played(
        HOLD.replace("spawn /opt/a", "spawn /opt/other"),
        HOLD.replace('"server.connected"', '"server.failed"') + "limit_seconds = 1",
        "[[fault]]\naction = 'refused'\nat = 'POST https://other.test/*'",
        "[[expect]]\nexit = 9",
        session=f"{SESSION}[[step]]\nkill = 'a'\n[[step]]\nremove = 'nothing'",
    )
    assert report.verdict is Verdict.UNTESTABLE
    assert [line for line in story(report).splitlines() if line.startswith("  untestable: ")] == [
        "  untestable: the hold of claude at 'spawn /opt/a' was ended by its limit of 1 s: the race did not take place",
        "  untestable: the hold of claude at 'spawn /opt/other' was not met: the race did not take place",
        "  untestable: [[fault]] 1 (refused) struck nowhere",
        "  untestable: the step that kills a met nobody",
        "  untestable: the step that removes nothing found nothing",
    ]
    assert "FAIL  it exits 0" in story(report)


def test_holds_and_releases_are_lines_of_the_timeline_in_their_place():
    lines = story(played(HOLD)).splitlines()
    held, released = (
        next(i for i, line in enumerate(lines) if word in line) for word in (" is held at ", " goes on at ")
    )
    assert held < next(i for i, line in enumerate(lines) if "b connected" in line) < released
    assert "claude            is held at spawn /opt/a" in lines[held]
    assert lines[released].endswith("what the hold waits for has happened")
    late = story(played(HOLD.replace('"server.connected"', '"server.failed"') + "limit_seconds = 1"))
    assert "goes on at spawn /opt/a: the hold's limit of 1 s was over" in late


def test_holds_leave_no_trace_of_their_own():
    report = played(HOLD)
    assert not [event.name for event in report.events if "hold" in event.name]
    assert [each.label for each in report.kept] == ["spawn /opt/a"] * 2


def test_the_run_that_a_request_is_of_is_named():
    offers = "offers = ['a']\n"
    report = played(
        session=f"{SESSION}[[step]]\nfollow_up = 'S'\n"
        f"[[expect]]\nrequest = 1\n{offers}[[expect]]\nrequest = 2\nrun = 1\n{offers}"
    )
    assert report.verdict is Verdict.PASS, report.failures
    text = story(report)
    assert "request 1 offers a (run 2, the last) ..." in text
    assert "request 2 of run 1 offers a ..." in text
    assert "the last" not in story(played("[[expect]]\nrequest = 1\noffers = ['a']"))


def test_printed_names_mean_the_one_that_they_are_printed_for():
    again = "[[step]]\nfollow_up = 'S'\n"
    expected = {"S": 2, "S#2": 1, "session S#2": 1, "session S": 1}
    for who, times in expected.items():
        report = played(session=f"{SESSION}{again}[[expect]]\nevent = 'session.ended'\nwho = '{who}'\ntimes = {times}")
        assert report.verdict is Verdict.PASS, report.failures
    retried = "[[fault]]\naction = 'refused'\nserver = 'b'"
    for who, times in {"claude": 5, "claude#2": 1, "S claude#2": 1, "S/claude#2": 1, "claude#9": 0}.items():
        report = played(retried, f"[[expect]]\nevent = 'server.failed'\nwho = '{who}'\ntimes = {times}")
        assert report.verdict is Verdict.PASS, report.failures


def test_a_second_run_is_printed_with_its_number():
    lines = story(played(session=f"{SESSION}[[step]]\nfollow_up = 'S'\n"))
    assert "   S#2 claude " in lines
    assert "   session S#2 " in lines


def test_the_simulated_time_is_that_of_the_last_event():
    report = played(session="[[step]]\nstart = 'S'\nturns = [{ seconds = 5 }]")
    assert report.seconds == report.events[-1].at_seconds - report.started_seconds
    assert report.seconds == pytest.approx(15, abs=0.1)


def test_a_server_that_exits_by_itself_is_told():
    told = story(played("[server.a]\nexits = 'on-call'\nexit_code = 139"))
    assert "   a                 exits 139" in told
    zero = story(played("[server.a]\nexits = 'on-call'\nexit_code = 0"))
    assert "   a                 exits 0" in zero
    assert "exits 0" not in "".join(line for line in story(played()).splitlines() if "its runtime" not in line)


def test_the_words_of_a_refused_server_are_no_header():
    report = played("[[fault]]\naction = 'answer'\nserver = 'b'\nstatus = 403")
    assert "b needs authorization (Authentication required for HTTP server)" in story(report)


def test_a_kill_counts_its_processes():
    start = "[[step]]\nstart = 'S'\nwait = false\nturns = [{ seconds = 60 }]\n[[step]]\nadvance = 10\n"
    assert "SIGKILL to claude (1 process)" in story(played(session=f"{start}[[step]]\nkill = 'claude'"))


BLOCKED = "[authorization.as-b]\n[server.b]\nprotected_by = 'as-b'"


def test_a_session_that_is_blocked_is_not_said_to_have_run_its_runtime():
    for runtime in RUNTIMES:
        report = played(BLOCKED, runtime=runtime)
        assert [each["exit_code"] for each in names(report, "session.ended")] == [1]
        assert "session S         ends without a run of its runtime (1)" in story(report)
        assert "its runtime exits" not in story(report)
        assert "session S         its runtime exits 0" in story(played(runtime=runtime))


def test_a_runtime_that_runs_after_a_sign_in_is_told_of_the_second_run_alone():
    report = played(BLOCKED, session=f"{SESSION}\n[[step]]\nauthorize = 'b'\nsession = 'S'")
    lines = [line for line in story(report).splitlines() if " ends without " in line or " its runtime " in line]
    assert [line.split("   ", 2)[2] for line in lines] == [
        "session S         ends without a run of its runtime (1)",
        "session S#2       its runtime exits 0",
    ]


def test_a_session_that_cannot_be_prepared_has_no_run_either():
    head = HEAD.replace('command = "/opt/a"', 'command = "/opt/a"\nenv = { K = "${MISSING}" }')
    told = story(play(read_scenario(short(head=head)), "codex"))
    assert "session S         cannot be started: " in told
    assert "its runtime exits" not in told


def test_the_scheduler_is_told_by_what_it_does():
    told = story(
        played(
            session=f"{SESSION}\n[[step]]\njob = 'refresh'\n[[step]]\njob = 'refresh'\nseconds = 7200\n"
            "[[step]]\njob = 'rotate-account'"
        )
    )
    assert "operator          the scheduler runs the job refresh once" in told
    assert "operator          the scheduler works for 7200 s: the job refresh whenever it comes due" in told
    assert "operator          the account that Claude is signed in with becomes another" in told


def test_a_provider_that_changes_is_told_with_what_it_changes_to():
    table = "[authorization.as-b]\n[server.b]\nprotected_by = 'as-b'"
    change = "set = { rotates = false }\nanswers = { token = ['429'] }\ndrawn = true"
    told = story(played(table, session=f"{SESSION}\n[[step]]\nprovider = 'as-b'\n{change}"))
    assert "as-b changes: rotates = false; answers the next request to token with 429" in told


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "00:00.0"), (83.25, "01:23.2"), (3599.96, "59:59.9"), (3600, "1:00:00.0"), (90061.5, "25:01:01.5")],
)
def test_times_beyond_an_hour_have_hours(seconds, shown):
    assert clock(seconds) == shown


def test_the_columns_of_a_story_of_hours_stand_below_each_other():
    lines = story(played(session=f"[[step]]\nadvance = 36000\n{SESSION}")).splitlines()
    first = lines.index("      virtual   who               what")
    rows = lines[first : lines.index("", first)]
    assert rows[1].startswith("      00:00.0   operator ")
    assert any(row.startswith("   10:00:00.0   operator ") for row in rows)
    assert {row.index("   ", 4) for row in rows if row.startswith("   10")} == {13}


@pytest.mark.parametrize("before", [(700, 10, 10), (0, 10, 10), (90_000, 5, 5)])
def test_a_run_leaves_the_collector_of_garbage_as_it_was(before):
    usual = gc.get_threshold()
    try:
        gc.set_threshold(*before)
        played()
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*usual)
