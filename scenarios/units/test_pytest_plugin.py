"""`pytest mcp.json`: one test an entry and one for the file, and nothing where no catalog is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SCHEMA = {"$schema": "https://pulsemcp.github.io/air/schemas/mcp.schema.json"}
STDIO = {"type": "stdio", "command": "npx", "args": ["-y", "pkg@1.0.0"]}
BUNX = {**STDIO, "command": "bunx"}
SHIPPED = Path(__file__).parents[2] / "mcp.json"


pytest_plugins = ["pytester"]


@pytest.fixture
def run_pytest(pytester):
    """Run pytest in an empty folder: (exit code, stdout and stderr). Workers need a process of its own."""

    def run(*arguments: str) -> tuple[int, str]:
        options = ["-p", "no:cacheprovider", "-p", "no:randomly", *arguments]
        done = pytester.runpytest_subprocess(*options) if "-n" in arguments else pytester.runpytest_inprocess(*options)
        return int(done.ret), done.stdout.str() + done.stderr.str()

    return run


def write(tree: object, path: str = "mcp.json") -> None:
    Path(path).write_text(json.dumps(tree, indent=2), encoding="utf-8")


def outcomes(output: str) -> dict[str, str]:
    """What `-v` says of each test."""
    return dict(
        re.findall(r"^(?:\[gw\d\] \[ *\d+%\] )?(?:(?:PASSED|FAILED) )?(\S+::.+?) (PASSED|FAILED)", output, re.M)
    )


def test_the_shipped_catalog_has_a_test_for_the_file_and_one_for_each_entry(run_pytest):
    code, out = run_pytest(str(SHIPPED), "-q")
    assert code == 0, out
    assert "17 passed" in out


def test_a_failing_entry_shows_its_findings_as_lines_and_no_traceback(run_pytest):
    write({**SCHEMA, "good": STDIO, "a[b]": {**STDIO, "startup_timeout_sec": 20}, "bad": {"type": "stdio"}})
    code, out = run_pytest("mcp.json", "-v")
    assert code == 1
    assert outcomes(out) == {
        "mcp.json::the file": "PASSED",
        "mcp.json::good": "PASSED",
        "mcp.json::a[b]": "FAILED",
        "mcp.json::bad": "FAILED",
    }
    lines = out.splitlines()
    assert any(re.match(r"mcp\.json:11:3 error MH701 .* Fix: ", line) for line in lines)
    assert any(re.match(r"mcp\.json:20:3 error MH20\d .* Fix: ", line) for line in lines)
    assert any(line.startswith("mcp.json:18:28 warning MH512") for line in lines)  # beside the error, in its section
    assert "Traceback" not in out
    assert "plugin.py" not in out


def test_warnings_fail_only_where_the_user_or_the_settings_say_so(run_pytest):
    write({**SCHEMA, "a": BUNX, "b": STDIO})
    assert run_pytest("mcp.json")[0] == 0
    code, out = run_pytest("mcp.json", "--mcp-fail-on", "warning", "-v")
    assert code == 1
    assert outcomes(out) == {"mcp.json::the file": "PASSED", "mcp.json::a": "FAILED", "mcp.json::b": "PASSED"}
    Path("mcp-harness.toml").write_text('[[allow]]\nrule = "MH401"\nreason = "old"\n')
    assert run_pytest("mcp.json", "--mcp-fail-on", "warning")[0] == 0
    Path("mcp-harness.toml").write_text('fail_on = "warning"\n')
    assert run_pytest("mcp.json")[0] == 1
    code, out = run_pytest("mcp.json", "--mcp-fail-on", "never")
    assert code == 4
    assert "invalid choice: 'never'" in out


def test_a_finding_on_the_file_fails_the_files_own_test(run_pytest):
    write({"a": STDIO})
    code, out = run_pytest("mcp.json", "--mcp-fail-on=note", "-v")
    assert code == 1
    assert outcomes(out) == {"mcp.json::the file": "FAILED", "mcp.json::a": "PASSED"}


def test_one_entry_can_be_selected_by_its_node_id(run_pytest):
    write({**SCHEMA, "good": STDIO, "a[b]": STDIO, "the file": STDIO})
    assert outcomes(run_pytest("mcp.json::good", "-v")[1]) == {"mcp.json::good": "PASSED"}
    assert outcomes(run_pytest("mcp.json::a[b]", "-v")[1]) == {"mcp.json::a[b]": "FAILED"}
    assert run_pytest("mcp.json::none")[0] == 4


def test_a_catalog_that_only_lies_in_a_tested_folder_is_left_alone(run_pytest):
    Path("tests").mkdir()
    write({"bad": {}}, "tests/mcp.json")
    Path("tests/test_one.py").write_text("def test_one():\n    pass\n")
    for arguments in ([], ["tests"], ["tests/test_one.py"], ["."]):
        code, out = run_pytest(*arguments, "-v")
        assert (code, outcomes(out)) == (0, {"tests/test_one.py::test_one": "PASSED"})
    code, out = run_pytest("tests", "tests/mcp.json", "-v")
    assert code == 1
    assert outcomes(out)["tests/mcp.json::bad"] == "FAILED"


def test_the_runtime_decides_what_is_judged(run_pytest):
    write({**SCHEMA, "a[b]": STDIO})
    assert run_pytest("mcp.json", "--mcp-runtime", "claude", "--mcp-runtime", "pi")[0] == 0
    assert run_pytest("mcp.json", "--mcp-runtime", "codex@0.169.0")[0] == 1


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ('{"a": 1,}', [], "mcp.json:1:9: not JSON"),
        ("[]", [], "mcp.json:1:1: holds a list, not an object"),
        ("{}", ["--mcp-runtime", "gemini"], "--runtime: unknown runtime 'gemini'"),
        ("{}", ["--mcp-base", "-x"], "--base '-x' is neither a file nor a git revision"),
        ("{}", ["--mcp-roots", "none.json"], "none.json: no such file"),
        ("{}", ["--mcp-known-secrets", "none"], "none: no such file"),
        ("{}", ["--mcp-tools", "none"], "none: no such file"),
    ],
)
def test_unusable_input_is_a_collection_error_of_one_line(run_pytest, content, arguments, words):
    Path("mcp.json").write_text(content)
    code, out = run_pytest("mcp.json", *[f"{a}={b}" for a, b in zip(arguments[::2], arguments[1::2], strict=True)])
    assert code == 2
    (said,) = [line for line in out.splitlines() if words in line and not line.startswith("ERROR ")]
    assert "Traceback" not in out
    assert "ERROR mcp.json" in out
    assert said


def test_a_base_leaves_untouched_entries_out_but_no_finding_that_it_brings(run_pytest):
    base = {**SCHEMA, "same": BUNX, "user": {**STDIO, "args": ["-y", "p@1.0.0"]}}
    write(base, "old.json")
    write({**base, "new": {**STDIO, "args": ["-y", "p@1.0.0"]}})
    options = ("--mcp-base=old.json", "--mcp-fail-on=note", "-v")
    assert outcomes(run_pytest("mcp.json", *options)[1]) == {
        "mcp.json::the file": "PASSED",
        "mcp.json::user": "FAILED",  # it runs the same package as the new one
        "mcp.json::new": "PASSED",
    }


def test_known_secrets_and_roots_are_options_as_on_the_command_line(run_pytest):
    write({**SCHEMA, "a": {**STDIO, "env": {"ACME_TOKEN_": "${ACME_TOKEN_}"}, "default_in_roots": ["ghost"]}})
    write({"main": {}}, "agents.json")
    Path("names").write_text("ACME_TOKEN\n")
    code, out = run_pytest("mcp.json", "--mcp-known-secrets=names", "--mcp-roots=agents.json")
    assert code == 1
    assert "MH310" in out
    assert "MH602" in out


def test_entries_are_spread_over_workers_and_come_in_any_order(run_pytest):
    write({**SCHEMA, **{f"s{n}": {**STDIO, "args": [f"p{n}@1.0.0"]} for n in range(4)}, "bad": {"type": "stdio"}})
    code, out = run_pytest("mcp.json", "-n", "2", "-v")
    assert code == 1
    assert "1 failed, 5 passed" in out
    code, out = run_pytest("mcp.json", "-p", "randomly", "-p", "no:xdist")
    assert code == 1
    assert "1 failed, 5 passed" in out


def test_a_name_that_could_forge_a_line_is_made_visible(run_pytest):
    write({**SCHEMA, "a\nFAKE PASSED\x1b[31m": {"type": "stdio"}, "": STDIO})
    code, out = run_pytest("mcp.json", "-v")
    assert code == 1
    assert "\x1b" not in out
    assert not any(line.startswith("FAKE") for line in out.splitlines())
    assert 'mcp.json::"" FAILED' in out
