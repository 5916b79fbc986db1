"""MH451 to MH460: servers in containers, told from the command line that starts them."""

from __future__ import annotations

import json

import pytest

from harness.gate.container_commands import container_run, image_floats
from harness.gate.engine import entry_findings as findings_of_engine
from harness.gate.judge import judge
from harness.gate.model import Severity, State
from scenarios.units.gate_fixture import catalog_context, entry_findings, findings, mended, only

CONTAINER_RULES = [f"MH45{digit}" for digit in range(1, 10)] + ["MH460"]
GOOD = ["run", "-i", "--rm", "-e", "ACME_TOKEN", "ghcr.io/acme/server:1.2.3"]
TOKEN = {"ACME_TOKEN": "${ACME_TOKEN}"}


def docker(*args, command="docker", **env):
    return {"type": "stdio", "command": command, "args": list(args), **({"env": env} if env else {})}


def states(entry):
    context = catalog_context(json.dumps({"a": entry}))
    return {outcome.state for outcome in judge(context.entries["a"], context, touched=True).outcomes}


def rules_of(entry):
    context = catalog_context(json.dumps({"a": entry}))
    return [found.rule for found in findings_of_engine(context, context.entries["a"])]


def args_after(entry, rule):
    text = json.dumps({"a": entry}, indent=1)
    found = only(findings(text, [rule]))
    result = mended(text, found)
    assert findings(result, [rule]) == []
    return json.loads(result)["a"]["args"]


@pytest.mark.parametrize("command", ["docker", "podman", "/usr/local/bin/docker", "docker.exe", "nerdctl"])
def test_a_container_with_stdin_and_its_variables_passed_on_is_no_finding(command):
    entry = docker(*GOOD, command=command, **TOKEN)
    assert entry_findings(entry, CONTAINER_RULES) == []
    assert states(entry) == {State.STARTS}


@pytest.mark.parametrize(
    "args",
    [
        ["compose", "run", "server"],
        ["mcp", "gateway", "run"],
        ["start", "-ai", "server"],
        [],
        ["--version"],
    ],
)
def test_what_runs_no_container_of_its_own_is_let_be(args):
    assert entry_findings(docker(*args), CONTAINER_RULES) == []


@pytest.mark.parametrize(
    ("args", "becomes"),
    [
        (["run", "--rm", "img:1"], ["run", "-i", "--rm", "img:1"]),
        (["container", "run", "--rm", "img:1"], ["container", "run", "-i", "--rm", "img:1"]),
        (["run", "--rm", "-i=false", "img:1"], None),
        (["--context", "x", "run", "--rm", "img:1", "-i"], ["--context", "x", "run", "-i", "--rm", "img:1", "-i"]),
        (["exec", "name", "server"], ["exec", "-i", "name", "server"]),
    ],
)
def test_without_i_the_server_never_gets_a_request(args, becomes):
    found = only(entry_findings(docker(*args), ["MH451"]))
    assert (found.severity, found.place.pointer) == (Severity.ERROR, "/a/args")
    assert "without -i closes the server's stdin" in found.message
    assert states(docker(*args)) == {State.FAILS}
    if becomes is not None:
        assert args_after(docker(*args), "MH451") == becomes


@pytest.mark.parametrize("flag", ["-i", "--interactive", "--interactive=true", "-ie"])
def test_every_spelling_of_i_is_known(flag):
    assert entry_findings(docker("run", flag, "A=1", "img:1"), ["MH451"]) == []


@pytest.mark.parametrize(
    ("args", "becomes"),
    [
        (["run", "-it", "--rm", "img:1"], ["run", "-i", "--rm", "img:1"]),
        (["run", "-ti", "img:1"], ["run", "-i", "img:1"]),
        (["run", "-i", "-t", "img:1"], ["run", "-i", "img:1"]),
        (["run", "-i", "--tty", "img:1"], ["run", "-i", "img:1"]),
        (["run", "-t", "img:1"], ["run", "-i", "img:1"]),
        (["exec", "-it", "name", "server"], ["exec", "-i", "name", "server"]),
    ],
)
def test_a_terminal_breaks_the_conversation_and_is_one_finding(args, becomes):
    entry = docker(*args)
    assert [rule for rule in rules_of(entry) if rule in ("MH451", "MH452")] == ["MH452"]
    assert states(entry) == {State.FAILS}
    assert args_after(entry, "MH452") == becomes


@pytest.mark.parametrize(
    ("args", "becomes"),
    [
        (["run", "-d", "img:1"], ["run", "-i", "img:1"]),
        (["run", "-i", "--detach", "img:1"], ["run", "-i", "img:1"]),
        (["run", "-di", "img:1"], ["run", "-i", "img:1"]),
    ],
)
def test_a_container_in_the_background_is_dead_for_the_runtime(args, becomes):
    entry = docker(*args)
    assert [rule for rule in rules_of(entry) if rule in ("MH451", "MH453")] == ["MH453"]
    assert states(entry) == {State.FAILS}
    assert args_after(entry, "MH453") == becomes


def test_flags_behind_the_image_are_the_servers_own():
    entry = docker("run", "-i", "--rm", "img:1", "-t", "-d", "--name", "x", "-p", "1:1", "-e", "B")
    assert entry_findings(entry, CONTAINER_RULES) == []


def test_a_variable_passed_on_that_nobody_sets_is_a_warning_with_the_line_to_write():
    found = only(entry_findings(docker(*GOOD), ["MH454"]))
    assert (found.severity, found.place.pointer) == (Severity.WARNING, "/a/args/4")
    assert "unless the machine that runs the agent exports it" in found.message
    assert found.fix == 'Set it: "env": {"ACME_TOKEN": "${ACME_TOKEN}"}.'


@pytest.mark.parametrize("passed", ["ACME_TOKEN", "A=b", "A=", "HTTPS_PROXY", "ACME_*"])
def test_a_variable_that_is_set_or_has_a_value_is_no_finding(passed):
    assert entry_findings(docker("run", "-i", "-e", passed, "img:1", **TOKEN), ["MH454"]) == []


def test_a_variable_of_env_that_nothing_passes_on_stays_outside():
    entry = docker("run", "-i", "--rm", "img:1", ACME_TOKEN="x", DOCKER_HOST="y", OTHER="z")
    found = only(entry_findings(entry, ["MH455"]))
    assert (found.severity, found.place.pointer) == (Severity.WARNING, "/a/env/ACME_TOKEN")
    assert "env sets ACME_TOKEN and OTHER for `docker` alone" in found.message
    assert args_after(entry, "MH455") == ["run", "-e", "ACME_TOKEN", "-e", "OTHER", "-i", "--rm", "img:1"]


@pytest.mark.parametrize(
    "option",
    [
        ["-e", "ACME_TOKEN"],
        ["-eACME_TOKEN"],
        ["--env", "ACME_TOKEN"],
        ["--env=ACME_TOKEN"],
        ["-e", "ACME_TOKEN=${ACME_TOKEN}"],
        ["-ie", "ACME_TOKEN"],
        ["--env-file", "/etc/x"],
        ["-e", "ACME_*"],
    ],
)
def test_every_way_to_pass_a_variable_on_is_known(option):
    assert entry_findings(docker("run", "-i", *option, "img:1", **TOKEN), ["MH455"]) == []


def test_a_slip_in_a_passed_name_is_one_finding():
    entry = docker("run", "-i", "-e", "ACME_TOKNE", "img:1", **TOKEN)
    found = only(entry_findings(entry, ["MH454", "MH455"]))
    assert "Probably ACME_TOKEN of env is meant." in found.message
    assert args_after(entry, "MH454")[3] == "ACME_TOKEN"


@pytest.mark.parametrize(
    "option",
    [
        ["-v", "~/data:/data"],
        ["-v~/data:/data"],
        ["--volume=$(pwd):/data"],
        ["--mount", "type=bind,src=~/data,dst=/data"],
        ["-v", "`pwd`:/data"],
    ],
)
def test_a_mount_that_only_a_shell_could_read_never_starts(option):
    entry = docker("run", "-i", "--rm", *option, "img:1")
    assert only(entry_findings(entry, ["MH456"])).severity is Severity.ERROR
    assert states(entry) == {State.FAILS}


@pytest.mark.parametrize("source", ["/srv/data", "data", "./data", "${DATA}", "/srv/~x"])
def test_a_mount_that_the_program_can_read_is_no_finding(source):
    assert entry_findings(docker("run", "-i", "-v", f"{source}:/data", "img:1"), ["MH456"]) == []


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--name", "acme"], "the name"),
        (["--name=acme"], "the name"),
        (["-p", "8080:80"], "the published port"),
        (["-p127.0.0.1:8080:80/tcp"], "the published port"),
        (["--publish", "8080-8081:80-81"], "the published port"),
    ],
)
def test_a_fixed_name_or_port_leaves_room_for_one_session(option, said):
    found = only(entry_findings(docker("run", "-i", *option, "img:1"), ["MH457"]))
    assert found.severity is Severity.WARNING
    assert found.message.startswith(said)


@pytest.mark.parametrize("option", [["--name", "acme"], ["--name=acme"]])
def test_a_name_can_be_taken_out(option):
    assert args_after(docker("run", "-i", *option, "img:1"), "MH457") == ["run", "-i", "img:1"]


@pytest.mark.parametrize("option", [["-p", "80"], ["-p", "127.0.0.1::80"], ["--name", "a-${SESSION}"], ["-P"]])
def test_a_port_that_the_program_chooses_is_no_finding(option):
    assert entry_findings(docker("run", "-i", *option, "img:1"), ["MH457"]) == []


@pytest.mark.parametrize(
    ("args", "env", "pointers"),
    [
        (["-e", "API=http://localhost:3000", "img:1"], {}, ["/a/args/3"]),
        (["img:1", "--url", "http://127.0.0.1/x"], {}, ["/a/args/4"]),
        (["-e", "API", "img:1"], {"API": "http://localhost"}, ["/a/env/API"]),
        (["--network", "host", "img:1", "http://localhost:1"], {}, []),
        (["--net=host", "img:1", "http://localhost:1"], {}, []),
        (["img:1", "http://localhost.example.com"], {}, []),
        (["img:1", "http://host.docker.internal:1"], {}, []),
    ],
)
def test_localhost_in_a_container_is_a_note(args, env, pointers):
    found = entry_findings(docker("run", "-i", *args, **env), ["MH458"])
    assert [(each.place.pointer, each.severity) for each in found] == [(p, Severity.NOTE) for p in pointers]


def test_without_rm_containers_pile_up():
    found = only(entry_findings(docker("run", "-i", "img:1"), ["MH459"]))
    assert found.severity is Severity.NOTE
    assert args_after(docker("run", "-i", "img:1"), "MH459") == ["run", "--rm", "-i", "img:1"]
    assert entry_findings(docker("exec", "-i", "name", "server"), ["MH459"]) == []


@pytest.mark.parametrize("args", [["run"], ["run", "-i", "--rm"], ["run", "-i", "-e", "A"], ["exec", "-i"]])
def test_without_an_image_nothing_can_start(args):
    found = only(entry_findings(docker(*args), ["MH460", "MH451", "MH459"]))
    assert (found.rule, found.severity) == ("MH460", Severity.ERROR)
    assert states(docker(*args)) == {State.FAILS}


def test_a_remote_entry_and_arguments_of_another_kind_run_no_container():
    entry = docker("run", "img")
    assert entry_findings({**entry, "type": "sse"}, CONTAINER_RULES) == []
    assert entry_findings({**entry, "args": ["run", 3, "img"]}, CONTAINER_RULES) == []
    assert entry_findings({**entry, "args": "run img"}, CONTAINER_RULES) == []


def test_options_with_values_are_told_from_switches():
    run = container_run("docker", ["run", "--network", "x", "-v", "/a:/b", "-u=1", "--init", "--", "img", "arg"])
    assert run is not None
    assert (run.image_at, run.values("volume"), run.values("user"), run.has("init")) == (8, ("/a:/b",), ("1",), True)


@pytest.mark.parametrize(
    ("image", "floats"),
    [
        ("img", True),
        ("img:latest", True),
        ("host:5000/img", True),
        ("host:5000/img:1", False),
        ("img@sha256:00", False),
        ("img:${TAG}", False),
        ("${IMAGE}", False),
        ("", False),
    ],
)
def test_an_image_floats_without_a_tag_of_its_own(image, floats):
    assert image_floats(image) is floats
