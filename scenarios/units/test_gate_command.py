"""`mcp-harness gate` as its user meets it: inputs, exit codes, comparison with a base, fixes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.gate.rule import RULES
from harness.gate.rules import load_rules
from harness.report.formats import load_formats
from scenarios.benchmarks.catalogs import entries

STDIO = {"type": "stdio", "command": "npx", "args": ["-y", "pkg@1.0.0"]}
REMOTE = {"type": "streamable-http", "url": "https://x.example.com/mcp"}
SCHEMA = {"$schema": "https://pulsemcp.github.io/air/schemas/mcp.schema.json"}
SHIPPED = Path(__file__).parents[2] / "mcp.json"


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["gate", "--battery", "off", *arguments])  # the battery has tests of its own
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def write(tree: object, path: str = "mcp.json") -> None:
    Path(path).write_text(json.dumps(tree, indent=2), encoding="utf-8")


def git(*arguments: str, folder: Path | str = ".") -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.requirement("catalog-sixteen-valid", "catalog-sixteen-npx-bare")
def test_the_shipped_catalog_passes_with_all_sixteen_entries_judged_on_three_runtimes(gate):
    code, out, err = gate(str(SHIPPED))
    assert (code, err) == (0, "")
    assert "0 errors, 0 warnings" in out
    assert "16/16 entries judged" in out
    assert "claude@2.1.268 codex@0.146.0 pi@0.84.1+2.32.1 (pinned)" in " ".join(out.split())


def test_a_name_that_is_empty_is_seen_to_be(gate):
    write({"": {"type": "stdio", "command": "/opt/a"}})
    lines = gate("mcp.json")[1].splitlines()
    assert any(line.split()[:2] == ['""', "starts"] for line in lines)
    assert any('MH707 "": no session' in line for line in lines)


def test_every_version_of_every_runtime_judges_the_shipped_catalog(gate):
    code, out, _ = gate(str(SHIPPED), "--runtime", "all", "--format", "json")
    assert code == 0
    assert "codex@0.169.0" in out
    assert "claude@2.1.328" in out


@pytest.mark.requirement("catalog-live-count-free")
@pytest.mark.parametrize("count", [1, 3, 16, 19])
def test_the_verdict_does_not_depend_on_how_many_entries_a_catalog_has(gate, count):
    write({**SCHEMA, **entries(count)})
    code, out, _ = gate()
    assert code == 0
    assert f"{count}/{count} entr" in out
    assert "0 errors, 0 warnings, 0 notes" in out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b'{"a": NaN}', "NaN is no JSON value"),
        (b"plain text", "not JSON"),
        (b"[]", "holds a list, not an object"),
        (b"null", "holds null, not an object"),
        (b"true", "holds a truth value, not an object"),
        (b"3", "holds a number, not an object"),
        (b'"x"', "holds a text, not an object"),
        (b'{"a":' * 5000, "nesting is deeper"),
        (b"\xff\xfe{\0}\0", "not UTF-8"),
    ],
)
def test_unusable_content_is_one_line_and_exit_code_2(gate, content, words):
    Path("mcp.json").write_bytes(content)
    code, out, err = gate("mcp.json")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("mcp-harness: error: mcp.json")
    assert words in err


def test_a_folder_a_missing_file_and_no_catalog_at_all_are_told_apart(gate):
    Path("folder").mkdir()
    assert gate("folder")[0] == gate("none.json")[0] == gate()[0] == 2
    assert "folder: is a folder" in gate("folder")[2]
    assert "none.json: no such file" in gate("none.json")[2]
    assert "no mcp.json here or above" in gate()[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--runtime", "gemini"],
        ["--runtime", "gemini@1.0"],
        ["--format", "yaml"],
        ["--format", "json", "--format", "text"],
        ["--format", "json=no/such/folder.json"],
        ["--fail-on", "never"],
        ["--secrets", "none"],
        ["--known-secrets", "none"],
        ["--tools", "none"],
        ["--roots", "none"],
        ["--base", "-x"],
        ["--secrets", "a", "--known-secrets", "b"],
        ["--unknown"],
    ],
)
def test_unusable_arguments_are_one_line_and_exit_code_2(gate, arguments):
    write({"a": STDIO})
    code, out, err = gate("mcp.json", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1, err


def test_a_byte_order_mark_is_a_finding_that_fix_removes(gate):
    Path("mcp.json").write_bytes(b"\xef\xbb\xbf" + json.dumps({**SCHEMA, "a": STDIO}).encode())
    code, out, _ = gate()
    assert code == 1
    assert "MH102" in out
    code, out, err = gate("--fix")
    assert code == 0
    assert "fixed 1 finding in mcp.json" in err
    assert not Path("mcp.json").read_bytes().startswith(b"\xef\xbb\xbf")


def test_fix_writes_what_diff_shows_and_keeps_the_rest_of_the_file(gate):
    text = (
        f'{{"$schema": "{SCHEMA["$schema"]}",\r\n  "b": {{"type": "http", "url": "https://x.example.com/mcp"}},\r\n'
        '  "a":   {"type":"stdio","command":"node"}\r\n}\r\n'
    )
    Path("mcp.json").write_text(text, newline="")
    code, out, _ = gate("--diff")
    assert code == 1
    assert '+  "b": {"type": "streamable-http", "url"' in out
    assert Path("mcp.json").read_bytes().decode() == text
    code, _, err = gate("--fix")
    assert (code, err) == (0, "fixed 1 finding in mcp.json: MH203 b\n")
    assert Path("mcp.json").read_bytes().decode() == text.replace('"http"', '"streamable-http"')
    assert gate("--diff")[:2] == (0, "")


def test_the_level_that_fails_is_the_users_choice(gate):
    write({**SCHEMA, "a": {**STDIO, "startup_timeout_sec": 20}})
    assert gate()[0] == 0
    assert gate("--fail-on", "warning")[0] == 1
    Path("mcp-harness.toml").write_text('fail_on = "warning"\n')
    assert gate()[0] == 1
    assert gate("--fail-on", "error")[0] == 0


def test_an_allowance_lets_one_finding_pass_until_its_date_and_is_reported_when_stale(gate):
    fast = {**STDIO, "startup_timeout_sec": 20}
    write({**SCHEMA, "a": fast, "b": {**fast, "args": ["-y", "other@1.0.0"]}})
    allow = '[[allow]]\nrule = "MH512"\nentry = "a"\nreason = "old server"\n'
    Path("mcp-harness.toml").write_text(allow)
    _, out, _ = gate()
    assert "1 warning" in out
    assert 'mcp-harness.toml:1:1 "old server"' in out
    Path("mcp-harness.toml").write_text(allow + "until = 2001-01-01\n")
    code, out, _ = gate("--fail-on", "warning")
    assert code == 1
    assert "MH002" in out
    assert "3 warnings" in out
    Path("mcp-harness.toml").write_text(allow.replace("MH512", "MH101"))
    assert "mcp-harness.toml:1:1" in gate()[1]
    assert "MH001" in gate()[1]


@pytest.mark.requirement("catalog-default-unknown-root")
def test_settings_and_roots_are_found_from_a_folder_below(gate, monkeypatch):
    write({**SCHEMA, "a": {**STDIO, "default_in_roots": ["ghost"]}}, "catalog.json")
    write({"main": {}}, "agents.json")
    Path("mcp-harness.toml").write_text('catalog = "catalog.json"\nroots = "agents.json"\nruntimes = ["pi"]\n')
    Path("deep/er").mkdir(parents=True)
    monkeypatch.chdir("deep/er")
    code, out, _ = gate()
    assert code == 0
    assert out.startswith("../../catalog.json: 1 entry, ../../agents.json: 1 root; pi@")
    assert "MH602" in out
    assert "ghost" in out


def changed_repository() -> None:
    """A repository whose work tree differs from its last commit in one url, one new and one removed entry."""
    git("init", "-q")
    notion = {"type": "streamable-http", "url": "https://mcp.notion.com/mcp"}
    write({**SCHEMA, "notion": notion, "gone": STDIO, "same": {**STDIO, "args": ["-y", "same@latest"]}})
    write({"main": {}}, "roots.json")
    git("add", ".")
    git("commit", "-qm", "base")
    notion["url"] = "https://mcp.notion.com/v1/mcp"
    new = {**STDIO, "args": ["-y", "new@2.0.0"], "env": {"T": "${T}"}, "default_in_roots": ["main"]}
    write({**SCHEMA, "notion": notion, "same": {**STDIO, "args": ["-y", "same@latest"]}, "new": new})


def test_a_comparison_says_what_the_change_does_to_whom(gate):
    changed_repository()
    code, out, err = gate("--base", "HEAD")
    assert (code, err) == (0, "")
    flat = " ".join(out.split())
    assert "1 added, 1 changed, 1 removed, 1 untouched" in flat
    assert "notion|eac663db915250e7 -> notion|3fad03f7abd02b9c: everyone must AUTHORIZE AGAIN" in flat
    assert "root main gets it by default: those sessions can now run new@2.0.0" in flat
    assert "seed T" in flat
    assert "MH431" not in out  # the floating entry was not touched
    assert "MH431" in gate("--base", "HEAD", "--all")[1]


def test_a_base_may_be_a_file_and_an_unchanged_catalog_changes_nothing(gate):
    write({**SCHEMA, "a": STDIO})
    write({**SCHEMA, "a": STDIO}, "old.json")
    code, out, _ = gate("--base", "old.json")
    assert code == 0
    assert "0 added, 0 changed, 0 removed, 1 untouched" in " ".join(out.split())
    assert "0/1 entry judged" in out


def test_a_catalog_that_the_base_does_not_have_is_all_new(gate):
    git("init", "-q")
    git("commit", "-qm", "empty", "--allow-empty")
    write({**SCHEMA, "a": STDIO})
    assert "1 added" in gate("--base", "HEAD")[1]


def test_a_shallow_clone_without_the_base_names_the_fetch_to_run(gate, tmp_path, monkeypatch):
    changed_repository()
    git("clone", "-q", "--depth=1", "--no-single-branch", tmp_path.as_uri(), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    code, out, err = gate("--base", "origin/release")
    assert (code, out) == (3, "")
    assert "git fetch --depth=1 origin +refs/heads/release:refs/remotes/origin/release" in err
    assert gate("--base", "origin/main")[0] == 0


@pytest.mark.parametrize("name", sorted(load_formats()))
def test_every_format_says_that_a_shallow_clone_was_compared_with_the_tip(gate, tmp_path, monkeypatch, name):
    git("init", "-q")
    write({**SCHEMA, "a": STDIO})
    for text in ("first", "second"):
        git("add", ".")
        git("commit", "-qm", text, "--allow-empty")
    git("branch", "work", "HEAD~1")
    git("clone", "-q", "--depth=1", "--branch=work", "--no-single-branch", tmp_path.as_uri(), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    told = "since this shallow clone does not hold the merge base: what others have merged there"
    assert told in " ".join(gate("--base", "origin/main", "--format", name)[1].split()).replace("%3A", ":")
    git("fetch", "-q", "--unshallow")
    assert "shallow" not in gate("--base", "origin/main", "--format", name)[1]


def test_a_base_outside_any_repository_and_a_broken_base_are_one_line(gate, monkeypatch):
    write({**SCHEMA, "a": STDIO})
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(Path.cwd().parent))
    code, _, err = gate("--base", "main")
    assert code == 3
    assert "in no git repository" in err
    Path("old.json").write_text("{")
    code, _, err = gate("--base", "old.json")
    assert code == 2
    assert err.startswith("mcp-harness: error: old.json:1:2: not JSON")


def test_a_misspelt_secret_is_an_error_that_names_the_right_one(gate):
    write({**SCHEMA, "a": {**REMOTE, "headers": {"Authorization": "Bearer ${ACME_TOKEN_}"}}})
    Path("names").write_text("ACME_TOKEN\n")
    code, out, _ = gate("--known-secrets", "names")
    assert code == 1
    assert "MH310" in out
    assert "ACME_TOKEN" in out


def test_no_secret_value_reaches_any_report_or_file(gate):
    value = "s3cr3t-Value-0123456789abcdef"
    secret_env = {**STDIO, "env": {"A_TOKEN": "${A_TOKEN}"}}
    write({**SCHEMA, "a": secret_env, "b": {**REMOTE, "headers": {"X-Api-Key": value}}})
    Path("secrets").write_text(f"A_TOKEN={value}\n")
    formats = ("text", "json", "github", "junit", "sarif", "markdown")
    targets = [part for name in formats for part in ("--format", f"{name}=out-{name}")]
    code, out, err = gate("--secrets", "secrets", *targets)
    assert code == 1
    assert out == ""
    for name in formats:
        assert value not in Path(f"out-{name}").read_text()
    assert value not in err


def test_explain_tells_every_rule_and_suggests_for_a_slip(capsys):
    load_rules()
    assert main(["explain"]) == 0
    listed = capsys.readouterr().out
    for identifier, rule in RULES.items():
        assert f"{identifier}  {rule.severity}" in listed
        assert main(["explain", identifier.lower()]) == 0
        text = capsys.readouterr().out
        assert rule.title in text
        assert "why" in text
        assert "fix" in text
    assert main(["explain", "MH9999"]) == 2
    assert "nothing is called MH9999" in capsys.readouterr().err


def test_services_get_paths_from_the_top_of_the_repository_and_people_get_paths_from_where_they_stand(
    gate, monkeypatch
):
    git("init", "-q")
    Path("config/deep").mkdir(parents=True)
    write({**SCHEMA, "a": {**STDIO, "startup_timeout_sec": 20}}, "config/mcp.json")
    monkeypatch.chdir("config/deep")
    _, out, _ = gate("--format", "text", "--format", "sarif=out.sarif", "--format", "github=out.github")
    assert "../mcp.json:" in out
    results = json.loads(Path("out.sarif").read_text())["runs"][0]["results"]
    locations = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results}
    assert locations == {"config/mcp.json"}
    assert "file=config/mcp.json," in Path("out.github").read_text()


def test_junit_fails_what_fails_the_run(gate):
    write({**SCHEMA, "a": {**STDIO, "startup_timeout_sec": 20}})
    assert gate("--format", "junit=out.xml")[0] == 0
    assert "<failure" not in Path("out.xml").read_text()
    assert gate("--format", "junit=out.xml", "--fail-on", "warning")[0] == 1
    assert "<failure" in Path("out.xml").read_text()


def test_a_report_never_overwrites_what_the_gate_reads(gate):
    write({**SCHEMA, "a": STDIO})
    write({"main": {}}, "base.json")
    content = Path("mcp.json").read_bytes()
    for target, extra in (("mcp.json", ()), ("base.json", ("--base", "base.json"))):
        code, _, err = gate("--format", f"json={target}", *extra)
        assert code == 2
        assert f"would overwrite {target}" in err
    assert Path("mcp.json").read_bytes() == content


def test_fixing_goes_on_until_nothing_is_left_and_diff_shows_the_same_end(gate):
    write({"mcpServers": {"a": {"type": "http", "url": "https://x.example.com/mcp"}}})
    shown = gate("--diff")[1]
    assert "streamable-http" in shown
    assert "$schema" in shown
    assert gate("--fix")[0] == 0
    assert gate("--diff")[:2] == (0, "")
    assert json.loads(Path("mcp.json").read_text())["a"]["type"] == "streamable-http"


def test_the_diff_of_fixes_shows_no_secret(gate):
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    write({"a": {"type": "http", "url": "https://x.example.com/mcp", "headers": {"Authorization": f"Bearer {token}"}}})
    code, out, _ = gate("--diff")
    assert code == 1
    assert token not in out


def test_explain_takes_several_rules(capsys):
    assert main(["explain", "MH203", "MH401"]) == 0
    out = capsys.readouterr().out
    assert "MH203" in out
    assert "MH401" in out


@pytest.mark.parametrize(("redirection", "code"), [(">&-", 0), (">/dev/full", 2), ("| head -0", 0)])
def test_an_output_that_nobody_takes_ends_without_a_traceback(gate, redirection, code):
    write({**SCHEMA, "a": STDIO})
    command = f"'{sys.executable}' -m harness.cli gate {redirection}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602 - a shell's own redirections
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1


def test_what_programs_read_is_utf_8_whatever_the_terminal_speaks(gate):
    write({**SCHEMA, "a": {**STDIO, "title": "ü", "startup_timeout_sec": 20, "unavailable": "Später."}})
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-m", "harness.cli", "gate", "--format", "junit"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert "Später." in done.stdout.decode("utf-8")


def test_a_version_that_nobody_measured_is_not_here_to_be_run(gate):
    write({**SCHEMA, "a": STDIO})
    code, out, err = gate("--runtime", "claude@9.9.9")
    assert (code, out) == (3, "")
    assert "claude@2.1.268" in err
    Path("mcp-harness.toml").write_text('runtimes = ["codex@9"]\n')
    code, _, err = gate()
    assert code == 3
    assert "mcp-harness.toml: runtimes:" in err


@pytest.mark.parametrize(
    ("named", "judged", "stale"),
    [
        ("", ("pi", "claude"), False),
        ("", ("codex",), False),
        ("", (), False),
        ('runtimes = ["pi", "codex"]\n', ("pi",), False),
        ('runtimes = ["claude", "pi"]\n', ("pi",), True),
        ('runtimes = ["claude", "pi"]\n', ("codex",), False),
    ],
)
@pytest.mark.parametrize("entry", ['entry = "a"\n', ""])
def test_an_allowance_is_stale_only_where_every_runtime_that_it_may_be_about_was_judged(
    gate, named, judged, stale, entry
):
    write({**SCHEMA, "a": {**REMOTE, "type": "sse"}})
    Path("mcp-harness.toml").write_text(f'{named}[[allow]]\nrule = "MH807"\n{entry}reason = "codex only"\n')
    _, out, _ = gate(*(word for name in judged for word in ("--runtime", name)))
    assert ("MH001" in out) is stale


@pytest.mark.parametrize("runtime", ["claude", "codex", "pi", "all"])
def test_an_allowance_that_nothing_on_any_runtime_is_for_is_stale_whatever_is_judged(gate, runtime):
    write({**SCHEMA, "a": STDIO})
    Path("mcp-harness.toml").write_text('[[allow]]\nrule = "MH101"\nreason = "long gone"\n')
    assert "MH001" in gate("--runtime", runtime)[1]


@pytest.mark.parametrize("runtime", ["claude", "all"])
@pytest.mark.parametrize(("entry", "stale"), [("a", False), ("b", True)])
def test_a_finding_about_several_entries_is_told_at_the_same_one_whatever_is_judged(gate, runtime, entry, stale):
    """It is allowed for that one alone, on runtimes that are not judged as well."""
    write({**SCHEMA, "a": STDIO, "b": STDIO}, "base.json")
    write({**SCHEMA, "a": {**STDIO, "args": ["-y", "p"]}, "b": {**STDIO, "args": ["-y", "q"]}})
    Path("mcp-harness.toml").write_text(f'[[allow]]\nrule = "MH431"\nentry = "{entry}"\nreason = "r"\n')
    _, out, _ = gate("--base", "base.json", "--runtime", runtime, "--battery", "off")
    assert ("MH001" in out) is stale


def test_runtimes_that_are_named_replace_those_of_the_settings_even_where_these_are_unknown(gate):
    write({**SCHEMA, "a": STDIO})
    Path("mcp-harness.toml").write_text('runtimes = ["codex@9"]\n')
    assert gate("--runtime", "claude")[0] == 0


def test_an_allowance_for_a_rule_that_does_not_exist_is_refused_at_its_line(gate):
    write({**SCHEMA, "a": STDIO})
    Path("mcp-harness.toml").write_text('\n[[allow]]\nrule = "MH999"\nreason = "r"\n')
    code, _, err = gate()
    assert code == 2
    assert "mcp-harness.toml:2: there is no rule MH999" in err


def test_fix_names_what_it_fixed_and_leaves_the_decision_between_remote_and_stdio(gate):
    entry = {"type": "http", "url": "https://x.example.com/mcp", "command": "npx", "comand": "npx", "args": ["-y", "x"]}
    write({"a": entry})
    _, _, err = gate("--fix", "--battery", "off")
    assert err == "fixed 2 findings in mcp.json: MH203 a, MH107\n"
    written = json.loads(Path("mcp.json").read_text(encoding="utf-8"))
    assert written["a"] == {**entry, "type": "streamable-http"}
