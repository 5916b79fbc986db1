"""The tier `real` without any real program: what its output means, what a scenario's names become, what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_servers.models import ToolResult
from harness.canary.installing import Installed
from harness.cli import main
from harness.errors import CannotRunError, UserInputError
from harness.gate.spawn import runtime_named
from harness.scenario import model
from harness.scenario.agreement import differences
from harness.scenario.cast import Cast
from harness.scenario.library import load_all
from harness.scenario.model import Match, Often
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.real import production, stage
from harness.scenario.real.claude import Claude
from harness.scenario.real.codex import Codex
from harness.scenario.real.knowing import silent_reasons, untold_reasons, waits
from harness.scenario.real.launching import NO_TOOL, keyring_helper, model_of, variables
from harness.scenario.real.localizing import Localizer
from harness.scenario.real.observing import Around, Asked, Observer
from harness.scenario.real.pi import Pi
from harness.scenario.tiers import REAL
from harness.scenario.verdicts import Verdict
from harness.world.model.faults import FaultPlan
from harness.world.outside import keyring, standing_in, supervising
from harness.world.outside.control import Launch
from harness.world.outside.controller import Controller
from harness.world.outside.keyring import NoKeyringError
from harness.world.outside.reaping import marked
from harness.world.outside.setting import Setting
from scenarios.playing import played, short

IDENTITY = "0123456789abcdef01234567"
CALLS = (ToolCall("mail", "send"), ToolCall("files", "list"))
PLAN = Plan((Turn(CALLS), Turn()))


def around(*servers: str, names=None, reached=lambda _: True) -> Around:
    """A run with these servers, whose model calls in its first turn and is done in its second."""
    return Around(PLAN, servers, names or {}, reached)


def told(happened) -> list[tuple[str, dict[str, object]]]:
    """Events as plain values."""
    return [(each.name, dict(each.details)) for each in happened]


def log(level: str, text: str) -> str:
    """A line of Claude's log."""
    return json.dumps({level: text, "timestamp": "2026-01-05T10:00:00.000Z", "sessionId": "s", "cwd": "/clone"})


def result(number: int, text: str = "ok", is_error: bool | None = None) -> ToolResult:
    """What a call of our model gave."""
    return ToolResult(f"call_{IDENTITY}{number}", "", text, is_error)


# --- what Claude's log says -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "event", "details"),
    [
        (log("debug", "Starting connection with timeout of 180000ms"), "server.connecting", {}),
        (log("debug", "Successfully connected (transport: stdio) in 412ms"), "server.connected", {"seconds": 0.412}),
        (
            log("debug", "Skipping connection (cached needs-auth)"), "server.needs_auth",
            {"text": "Skipping connection (cached needs-auth)", "cached": True},
        ),
        (
            log("debug", "Authentication required for HTTP server"), "server.needs_auth",
            {"text": "Authentication required for HTTP server", "cached": False},
        ),
        (log("error", "Connection failed: gone"), "server.failed", {"text": "Connection failed: gone"}),
    ],
)  # fmt: skip
def test_a_line_of_claudes_log_is_one_event(line, event, details):
    assert told(Claude(around("mail")).logged("mail", [line])) == [(event, {"server": "mail", **details})]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no JSON",
        "[]",
        log("debug", "Connection failed after 9ms: gone"),
        log("error", "Server stderr: Connection failed"),
    ],
)
def test_other_lines_of_claudes_log_are_no_event(line):
    assert Claude(around("mail")).logged("mail", [line]) == []


def test_claudes_first_line_says_who_is_pending_and_is_waited_for():
    claude = Claude(around("mail", "files"))
    first = Asked(1, ["Bash", "mcp__files__list"])
    assert claude.awaits(first)
    servers = [{"name": "mail", "status": "pending"}, {"name": "files", "status": "connected"}]
    claude.printed("stdout", json.dumps({"type": "system", "subtype": "init", "mcp_servers": servers}))
    assert not claude.awaits(first)
    details = {"number": 1, "tools": ["mcp__files__list"], "pending": ["mail"]}
    assert told(claude.asked(first)) == [("model.request", details)]


# --- what Codex prints ------------------------------------------------------------------------------------------------

WARNING = '\x1b[2m10:00:00Z\x1b[0m WARN codex_mcp::rmcp_client: MCP server startup failed server_name="{}" error={}'


@pytest.mark.parametrize(
    ("words", "event"), [("connection closed", "server.failed"), ("Auth required", "server.needs_auth")]
)
def test_a_warning_of_codex_names_who_failed(words, event):
    happened = Codex(around("mail")).printed("stderr", WARNING.format("mail", words))
    assert told(happened) == [(event, {"server": "mail", "text": words})]


def test_codex_says_nothing_of_a_server_that_is_not_in_its_configuration():
    assert Codex(around("files")).printed("stderr", WARNING.format("mail", "gone")) == []


def test_a_namespace_in_a_request_of_codex_is_a_connected_server():
    codex = Codex(around("my-files", "mail"))
    happened = codex.asked(Asked(1, ["shell", "mcp__my_files/list"]))
    assert [name for name, _ in told(happened)] == ["server.connected", "model.request"]
    assert codex.untold == ("mail",)


def test_a_namespace_that_two_servers_could_have_tells_of_neither():
    codex = Codex(around("my-files", "my_files"))
    assert [name for name, _ in told(codex.asked(Asked(1, ["mcp__my_files/list"])))] == ["model.request"]


def test_what_codex_prints_of_a_call_says_whether_it_came_through():
    codex = Codex(around("mail", "files"))
    request = Asked(2, [], [result(1), result(0)])
    for server, tool, more in (
        ("mail", "send", {"status": "failed", "error": {"message": "no such box"}}),
        ("files", "list", {"status": "completed", "result": {"content": [{"type": "text", "text": "a b"}]}}),
    ):
        assert codex.awaits(request)
        item = {"type": "mcp_tool_call", "server": server, "tool": tool, **more}
        codex.printed("stdout", json.dumps({"type": "item.completed", "item": item}))
    assert not codex.awaits(request)
    happened = [each for each in told(codex.asked(request)) if each[0] == "tool.call"]
    assert happened == [
        ("tool.call", {"server": "files", "tool": "list", "ok": True, "text": "a b"}),
        ("tool.call", {"server": "mail", "tool": "send", "ok": False, "text": "no such box"}),
    ]


# --- what Pi prints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("MCP: Failed to connect to mail: Connection closed (no key)", "server.failed"),
        ("MCP: Failed to connect to mail: OAuth authentication required. Run /mcp-auth mail.", "server.needs_auth"),
        ("MCP: mail temporarily unavailable (HTTP 503); retry later", "server.failed"),
    ],
)
def test_a_line_of_pi_names_who_did_not_connect(line, event):
    assert told(Pi(around("mail")).printed("stderr", line)) == [(event, {"server": "mail", "text": line})]


@pytest.mark.parametrize(
    ("reached", "events"), [(True, ["server.connected", "model.request"]), (False, ["model.request"])]
)
def test_a_proxy_of_pi_counts_where_its_server_was_asked(reached, events):
    pi = Pi(around("mail", names={("mail", "send"): "mcp__mail"}, reached=lambda _: reached))
    assert [name for name, _ in told(pi.asked(Asked(1, ["mcp", "mcp__mail"])))] == events


def test_a_call_that_came_through_on_pi_proves_its_server():
    pi = Pi(around("mail", "files"))
    request = Asked(2, [], [result(0), result(1, "backing off")])
    assert pi.awaits(request)
    for number, details in enumerate(({}, {"error": "server_backoff"})):
        ended = {"type": "tool_execution_end", "toolCallId": f"call_{IDENTITY}{number}", "isError": False}
        pi.printed("stdout", json.dumps({**ended, "result": {"details": details}}))
    assert not pi.awaits(request)
    assert [(name, each.get("server"), each.get("ok")) for name, each in told(pi.asked(request))][:3] == [
        ("server.connected", "mail", None), ("tool.call", "mail", True), ("tool.call", "files", False),
    ]  # fmt: skip


# --- what the model is asked ------------------------------------------------------------------------------------------


def test_a_request_that_no_turn_answers_is_not_told():
    observer = Claude(around("mail"))
    assert [name for name, _ in told(observer.asked(Asked(3, [])))] == []


def test_results_of_calls_that_are_none_of_the_plan_are_not_told():
    odd = [ToolResult("toolu_of_somebody", "", "x", is_error=False), result(5, is_error=False)]
    assert [name for name, _ in told(Claude(around("mail")).asked(Asked(2, [], odd)))] == ["model.request"]


def test_a_turn_without_calls_goes_on_by_a_tool_that_nobody_has():
    model_server = model_of("claude", Plan((Turn(), Turn(CALLS), Turn())), {("mail", "send"): "mcp__mail__send"})
    assert [[call.name for call in answer.calls] for answer in model_server.answers] == [
        [NO_TOOL], ["mcp__mail__send", "mcp__files__list"], [],
    ]  # fmt: skip


def test_an_observer_without_words_of_its_own_knows_of_nobody():
    assert Observer(around("mail", "files")).untold == ("mail", "files")


# --- what cannot be known ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "family", "reason"),
    [
        (model.EventHappens(Match("server.connecting")), "codex", "the event server.connecting is told by nothing"),
        (
            model.EventHappens(Match("server.failed", where={"kind": "exited"})),
            "claude",
            "the field kind of server.failed",
        ),
        (model.EventHappens(Match("config.lost")), "claude", "the event config.lost"),
        (model.ServerIs("a", "skipped"), "claude", "that a is skipped"),
        (model.ServerIs("a", "pending"), "pi", "that a is pending"),
        (model.RequestOffers(2, pending=("a",)), "claude", "who is pending at request 2"),
        (model.RequestOffers(1, pending=("a",)), "codex", "who is pending at request 1"),
    ],
)
def test_what_nothing_tells_is_a_reason(check, family, reason):
    (found,) = untold_reasons(read_scenario(short()), family, [check])
    assert found.startswith(reason)


@pytest.mark.parametrize(
    "check",
    [
        model.EventHappens(Match("session.retry")),
        model.EventHappens(Match("mcp.received", where={"method": "x"})),
        model.EventHappens(Match("tool.call", where={"ok": True})),
        model.ServerIs("a", "connected"),
        model.ExitIs(0),
        model.RequestOffers(2, ("a",)),
    ],
)
@pytest.mark.parametrize("family", ["claude", "codex", "pi"])
def test_what_can_be_seen_is_no_reason(check, family):
    assert list(untold_reasons(read_scenario(short()), family, [check])) == []


def test_a_step_that_waits_for_what_nobody_sees_is_told_before_the_run():
    scenario = read_scenario(short("[[step]]\nwait_for = { event = 'server.connecting' }\nlimit_seconds = 5"))
    assert list(waits(scenario, "claude")) == []
    assert len(list(waits(scenario, "codex"))) == 1


def test_silence_of_codex_is_no_proof_and_silence_of_claude_is():
    failed, untold = model.ServerIs("a", "failed"), {"S/codex": ("a",)}
    assert "says nothing of a" in next(silent_reasons(failed, "codex", untold, ""))
    assert list(silent_reasons(failed, "claude", untold, "")) == []
    assert list(silent_reasons(failed, "codex", untold, "T")) == []
    never = model.EventHappens(Match("server.failed"), Often(0, 0))
    assert list(silent_reasons(never, "codex", untold, "")) == []


@pytest.mark.parametrize(
    ("table", "whom"),
    [
        ("[[hold]]\nactor = 'claude'\nat = 'POST *'\nuntil = { event = 'tool.call' }", "claude"),
        ("[[fault]]\nserver = 'b'\naction = 'refused'", "b"),
        ("[[fault]]\nactor = 'a'\nport = 'processes'\naction = 'kill'", "a"),
        ("[[fault]]\nport = 'files'\naction = 'enospc'", "anybody"),
    ],
)
def test_who_would_hold_or_strike_a_real_program_cannot_claim_the_tier(table, whom):
    text = short(table).replace("[catalog.a]", "tiers = ['real']\n[catalog.a]", 1)
    with pytest.raises(UserInputError, match=f"is about {whom}: at the tier real only sessions can be held or struck"):
        read_scenario(text)


def test_a_session_can_be_held_and_struck_at_every_tier():
    held = "[[hold]]\nactor = 'S'\nat = 'spawn claude'\nuntil = { event = 'step.start' }"
    struck = "[[fault]]\nactor = 'S'\nport = 'files'\naction = 'enospc'"
    assert read_scenario(short(held, struck).replace("[catalog.a]", "tiers = ['real']\n[catalog.a]", 1)).tiers == (
        "real",
    )


def test_runs_are_compared_by_what_both_know():
    known = played()
    blind = known._replace(tier="real", events=tuple(each for each in known.events if each.name != "server.connected"))
    assert differences(known, blind) == ()
    refused = tuple(
        each._replace(name="server.failed") if each.name == "server.connected" else each for each in known.events
    )
    assert len(differences(known, known._replace(tier="real", events=refused))) >= 2


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def localizer(tmp_path) -> Localizer:
    """Of a run where one origin is served."""
    return Localizer(tmp_path, "/run/control", ("python",), {"https://a.test": "http://127.0.0.1:4242"}, keeps=("npx",))


def local(localizer: Localizer, entry):
    """An entry as a session is given it."""
    return localizer.entry("a", entry, lambda text: text.replace("${HOST}", "a.test"), lambda value: value)


@pytest.mark.parametrize("command", ["/usr/bin/touch", "sh", "./run.sh", "../../bin/x", "/opt/../../x", "~/x", "npm"])
def test_every_command_names_a_program_of_the_run(command, localizer, tmp_path):
    made = Path(local(localizer, {"command": command, "args": ["-c", "x"]})["command"])
    assert made.is_relative_to(tmp_path)
    assert ".." not in made.parts
    assert made.name == Path(command).name
    assert localizer.normal(f"cannot run {made}: no") == f"cannot run {command}: no"


@pytest.mark.parametrize(
    ("url", "there"),
    [
        ("https://a.test/mcp?x=${KEY}", "http://127.0.0.1:4242/mcp?x=${KEY}"),
        ("https://${HOST}/mcp", "http://127.0.0.1:4242/mcp"),
        ("https://elsewhere.test/mcp", "http://127.0.0.1:9/mcp"),
        ("https://user:word@elsewhere.test/", "http://127.0.0.1:9/"),
        ("http://[", "http://127.0.0.1:9"),
    ],
)
def test_every_url_leads_to_this_machine(url, there, localizer):
    assert local(localizer, {"url": url})["url"] == there


def test_names_arguments_variables_and_headers_stay(localizer):
    entry = {
        "type": "http",
        "headers": {"url": "https://x.test"},
        "env": {"command": "/bin/x"},
        "args": ["!x", "/bin/x"],
    }
    assert local(localizer, entry) == entry


def test_a_value_that_a_runtime_would_execute_is_refused(localizer):
    with pytest.raises(CannotRunError, match="nothing of a scenario is executed"):
        local(localizer, {"url": "https://a.test/mcp", "headers": {"X-Key": "!touch /victim"}})


def test_commands_in_files_are_found_wherever_they_stand(localizer, tmp_path):
    toml = localizer.text("[mcp_servers.x]\ncommand = '/bin/x'\n[other]\nkeep = '/bin/y'\n")
    assert f'command = "{tmp_path}/root/bin/x"' in toml
    assert "keep = '/bin/y'" in toml
    assert "127.0.0.1:4242" in localizer.text('{"projects": {"p": {"mcpServers": {"s": {"url": "https://a.test/"}}}}}')
    assert localizer.text("no file of settings: command = sh") == "no file of settings: command = sh"


@pytest.mark.parametrize("text", ['{"a": {"command": "\\u002fbin/x"}}', '{"command": "/bin/x", // with a comment\n}'])
def test_a_file_whose_commands_cannot_be_replaced_is_refused(text, localizer):
    with pytest.raises(CannotRunError):
        localizer.text(text)


# --- programs ---------------------------------------------------------------------------------------------------------


def steering(folder, launcher=lambda *_: None):
    """Somebody who steers, and by default starts nothing."""
    return Controller(str(folder / "control"), launcher=launcher, endpoints={}, faults=FaultPlan(()))


def test_a_supervised_program_has_a_clean_environment_and_its_words_are_told(tmp_path):
    told_file = tmp_path / "told.json"
    program = "import os, sys; print(sorted(os.environ)); print(sys.stdin.read(), file=sys.stderr); sys.exit(3)"
    argv = [sys.executable, "-IS", "-c", program]
    told_file.write_text(json.dumps({"argv": argv, "env": {"ADDED": "1", "TAKEN": None}}), encoding="utf-8")
    with Controller(
        str(tmp_path / "control"), launcher=lambda *_: None, endpoints={}, faults=FaultPlan(())
    ) as controller:
        actor = controller.register("S/claude", None, {})
        variables = {"TAKEN": "x", "LC_CTYPE": "C.UTF-8", **Setting("S/claude", controller.path).variables()}
        done = subprocess.run(
            [sys.executable, "-IS", supervising.__file__, str(told_file)],
            env=variables, input="asked", capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, actor.exit_code, actor.alive) == (3, 3, False)
    assert done.stdout == "['ADDED', 'LC_CTYPE']\n"
    assert (done.stderr, actor.printed["stderr"]) == ("asked\n", ["asked"])


def test_a_supervised_program_gets_the_signals_of_its_supervisor(tmp_path):
    told_file = tmp_path / "told.json"
    argv = [sys.executable, "-IS", "-c", "import time; print('there', flush=True); time.sleep(60)"]
    told_file.write_text(json.dumps({"argv": argv, "env": {}}), encoding="utf-8")
    with Controller(
        str(tmp_path / "control"), launcher=lambda *_: None, endpoints={}, faults=FaultPlan(())
    ) as controller:
        actor = controller.register("S/claude", None, {})
        command = [sys.executable, "-IS", supervising.__file__, str(told_file)]
        variables = Setting("S/claude", controller.path).variables()
        with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"there\n"
            child.terminate()
            assert child.wait(20) == -15
    assert actor.exit_code == -15


def test_what_stands_in_is_asked_for_and_becomes_the_process(tmp_path):
    asked = []

    def launch(_parent, argv, env, _directory):
        asked.append((list(argv), env["KEPT"]))
        return Launch(
            (sys.executable, "-IS", "-c", "import os; print(os.environ['KEPT'], os.environ['MORE'])"),
            "x",
            {"MORE": "2"},
        )

    with steering(tmp_path, launch) as controller:
        command = [sys.executable, "-IS", standing_in.__file__, controller.path, "/opt/x", "a word"]
        done = subprocess.run(command, env={"KEPT": "1"}, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1 2\n", "")
    assert asked == [(["/opt/x", "a word"], "1")]


def test_where_nobody_stands_in_nothing_is_started(tmp_path):
    command = [sys.executable, "-IS", standing_in.__file__, str(tmp_path / "nobody"), "touch", str(tmp_path / "victim")]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == standing_in.NOT_FOUND
    assert not (tmp_path / "victim").exists()


def test_a_program_that_is_not_installed_is_named_with_the_way_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MCP_HARNESS_CACHE", str(tmp_path / "nothing"))
    file = tmp_path / "mine.toml"
    file.write_text(short("[[expect]]\nexit = 0"), encoding="utf-8")
    assert main(["run", str(file), "--tier", "real", "--runtime", "claude"]) == 3
    error = capsys.readouterr().err
    assert re.search("the tier real needs claude@2.1.268, which is not installed: mcp-harness canary install", error)


# --- Pi's keyring -----------------------------------------------------------------------------------------------------

PI = Installed("pi-0.84.1+2.32.1", "pi", "0.84.1+2.32.1", ("/pi",), Path("/a/adapter/index.ts"), Path("/node"), "")
PLACES_OF_A_STORE = ("PI_MCP_ADAPTER_TEST_AUTH_STORE", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
REFUSED = "the system allows no user namespace: Operation not permitted"


@pytest.fixture
def no_keyring(monkeypatch):
    """A system that refuses a keyring of one's own, and an installed Pi that nobody must start."""

    def refuse(_mark):
        raise NoKeyringError(REFUSED)

    monkeypatch.setattr(stage, "RunKeyring", refuse)
    monkeypatch.setattr(production, "cached", lambda *_: PI)


def test_where_pi_can_have_no_keyring_of_a_runs_own_the_run_is_untestable_and_says_why(no_keyring):
    scenario = next(each for each in load_all() if each.id == "pi-rotates")
    report = play(scenario, "pi", tier=REAL)
    told = f"Pi keeps credentials in the kernel's keyring, and a run can have none of its own: {REFUSED}"
    assert (report.verdict, report.detail) == (Verdict.UNTESTABLE, told)


def test_pi_keeps_credentials_in_its_memory_where_nobody_gives_out_tokens(no_keyring):
    scenario = next(each for each in load_all() if each.id == "oauth-injected-credential")
    cast = Cast(scenario, runtime_named("pi"))
    made = stage.RealStage(cast, {PI.label: PI})
    try:
        assert (made.keyring, made.no_keyring) == (None, "")
    finally:
        made.remove()


def test_pis_store_is_the_keyring_of_the_run_or_its_memory_and_never_the_users():
    given = {}
    for has_keyring in (True, False):
        told = variables(PI, Path("/home"), Path("/tmp"), "http://127.0.0.1:1", has_keyring=has_keyring)
        given[has_keyring] = {name: told.get(name, "as it is") for name in PLACES_OF_A_STORE}
    assert given == {
        True: {"PI_MCP_ADAPTER_TEST_AUTH_STORE": "as it is", "DBUS_SESSION_BUS_ADDRESS": None, "XDG_RUNTIME_DIR": None},
        False: {"PI_MCP_ADAPTER_TEST_AUTH_STORE": "memory"} | dict.fromkeys(PLACES_OF_A_STORE[1:], "as it is"),
    }


def test_pis_own_helper_lies_beside_its_adapter():
    assert keyring_helper(PI) == ["/node", "/a/adapter/mcp-keyring-helper.cjs"]


@pytest.mark.parametrize(
    ("program", "said"),
    [("print('the reason')", "the reason"), ("", "no keyring of the run's own could be made")],
)
def test_a_holder_that_holds_nothing_is_no_keyring(program, said, tmp_path, monkeypatch):
    holder = tmp_path / "holder.py"
    holder.write_text(program)
    monkeypatch.setattr(keyring, "__file__", str(holder))
    with pytest.raises(NoKeyringError, match=said):
        keyring.RunKeyring(f"MCP_HARNESS_KEYRING={tmp_path}/")
    assert marked(f"={tmp_path}/") == set()


def test_a_machine_without_these_system_calls_has_no_keyring(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "pdp11")
    with pytest.raises(NoKeyringError, match="only the keyring of Linux can be kept apart from the user's"):
        keyring.join_session()
