"""MH401 to MH405 and MH431: how an entry runs an npm package."""

from __future__ import annotations

import json

import pytest

from harness.gate.judge import judge
from harness.gate.model import Severity, State
from harness.gate.rules.npx import runs_npm_package_otherwise
from harness.gate.spec_versions import floats
from scenarios.shipped import shipped_catalog
from scenarios.units.gate_fixture import catalog_context, entry_findings, findings, mended, only, where

STDIO = {"type": "stdio"}
NPX = {**STDIO, "command": "npx", "args": ["-y", "pkg@1.0.0"]}

OTHER_FORMS = [
    ("/usr/local/bin/npx", ["-y", "p"], "/usr/local/bin/npx"),
    ("C:\\Program Files\\nodejs\\npx.cmd", ["p"], "C:\\Program Files\\nodejs\\npx.cmd"),
    ("npx.cmd", ["p"], "npx.cmd"),
    ("NPX", ["p"], "NPX"),
    ("npx ", ["p"], "npx"),
    ("bunx", ["p"], "bunx"),
    ("pnpx", ["p"], "pnpx"),
    ("npm", ["exec", "--yes", "--", "p"], "npm exec"),
    ("npm", ["--yes", "exec", "p"], "npm exec"),
    ("npm", ["--prefix", "/x", "x", "p"], "npm x"),
    ("npm.cmd", ["x", "p"], "npm.cmd x"),
    ("pnpm", ["dlx", "p"], "pnpm dlx"),
    ("pnpm", ["--package=q", "dlx", "p"], "pnpm dlx"),
    ("yarn", ["dlx", "-q", "p"], "yarn dlx"),
    ("bun", ["x", "p"], "bun x"),
    ("env", ["npx", "-y", "p"], "env npx"),
    ("/usr/bin/env", ["-u", "HOME", "A=b", "npx", "p"], "/usr/bin/env npx"),
    ("env", ["-S", "npx -y p"], "env npx"),
    ("sh", ["-c", "npx -y p"], "sh -c npx"),
    ("bash", ["-lc", "cd /x && exec npx -y p"], "bash -c exec npx"),
    ("bash", ["-l", "-c", "A=1 npx p"], "bash -c npx"),
    ("zsh", ["-c", "echo a; (npm exec p)"], "zsh -c npm exec"),
    ("sh", ["-c", "if true\nthen npx p\nfi"], "sh -c then npx"),
    ("sh", ["-c", "sh -c 'npx p'"], "sh -c sh -c npx"),
    ("cmd", ["/c", "npx", "-y", "p"], "cmd npx"),
    ("cmd.exe", ["/d", "/s", "/c", "npx -y p"], "cmd.exe npx"),
    ("timeout", ["30s", "npx", "p"], "timeout npx"),
    ("sudo", ["-u", "agent", "npx", "p"], "sudo npx"),
    ("op", ["run", "--", "npx", "p"], "op npx"),
    ("node", ["/usr/lib/node_modules/npm/bin/npx-cli.js", "p"], "node /usr/lib/node_modules/npm/bin/npx-cli.js"),
]

OTHER_PROGRAMS = [
    ("npx", ["-y", "p"]),
    ("npx", ["-c", "npm exec p"]),
    ("uvx", ["npx"]),
    ("uvx", ["--from", "x", "y"]),
    ("node", ["node_modules/.bin/x"]),
    ("node", ["server.js", "npx"]),
    ("npm", ["run", "exec"]),
    ("npm", ["start", "--", "x"]),
    ("pnpm", ["exec", "x"]),
    ("pnpm", ["run", "dlx"]),
    ("yarn", ["run", "dlx"]),
    ("bun", ["run", "x"]),
    ("env", ["A=npx", "node", "npx"]),
    ("sh", ["-c", "node server.js --with npx"]),
    ("sh", ["-c", "./my-npx-wrapper"]),
    ("sh", ["npx"]),
    ("sh", ["-c"]),
    ("docker", ["run", "-i", "node:20", "npx", "-y", "p"]),
    ("timeout", ["30", "node", "npx"]),
    ("my-npx", []),
    ("npx-server", ["p"]),
    ("", []),
    ("env", []),
    ("op", ["run", "--"]),
]


@pytest.mark.requirement("npx-catalog-bare-form")
@pytest.mark.parametrize(("command", "args", "form"), OTHER_FORMS)
def test_every_other_way_to_run_an_npm_package_is_reported_in_its_own_words(command, args, form):
    finding = only(entry_findings({**STDIO, "command": command, "args": args}, ["MH401"]))
    assert finding.message.startswith(f"`{form}` installs outside the clone")
    assert (finding.severity, finding.place.pointer, finding.runtimes) == (Severity.WARNING, "/a/command", ())


@pytest.mark.requirement("npx-catalog-bare-form")
@pytest.mark.parametrize(("command", "args"), OTHER_PROGRAMS)
def test_what_runs_no_npm_package_past_npx_is_left_alone(command, args):
    assert entry_findings({**STDIO, "command": command, "args": args}, ["MH401"]) == []


@pytest.mark.parametrize("args", [None, "npx", 3, {"0": "npx"}, [None, 3, ["npx"]]])
def test_arguments_of_any_kind_are_read_as_far_as_they_are_texts(args):
    assert entry_findings({**STDIO, "command": "env", "args": args}, ["MH401"]) == []
    assert runs_npm_package_otherwise({"command": "bunx", "args": args}) == "bunx"


def test_a_script_that_no_shell_could_parse_is_still_read_by_its_words():
    assert runs_npm_package_otherwise({"command": "sh", "args": ["-c", "npx -y p 'unclosed"]}) == "sh -c npx"


@pytest.mark.parametrize("kind", ["http", "streamable-http", None, "ws"])
def test_a_command_that_reaches_no_runtime_is_no_way_to_run_a_package(kind):
    for command in ("bunx", "npx"):
        entry = {"type": kind, "command": command, "args": [], "env": {"NPM_CONFIG_CACHE": "/x"}}
        assert entry_findings(entry, ["MH401", "MH402", "MH403", "MH405", "MH431"]) == []


@pytest.mark.parametrize("command", ["/usr/bin/npx", "npx.cmd", "NPX", " npx", "C:\\n\\npx.exe"])
def test_another_spelling_of_npx_itself_has_an_edit_that_ends_the_finding(command):
    text = json.dumps({"é": 1, "a": {**NPX, "command": command}}, indent=2, ensure_ascii=False)
    finding = only(findings(text, ["MH401"]))
    assert where(finding) == (5, 5)
    fixed = mended(text, finding)
    assert json.loads(fixed)["a"] == NPX
    assert findings(fixed, ["MH401"]) == []


@pytest.mark.parametrize("command", ["bunx", "sh", "env", "npm"])
def test_a_spelling_that_a_human_must_translate_has_no_edit(command):
    args = {"sh": ["-c", "npx p"], "env": ["npx", "p"], "npm": ["x", "p"]}.get(command, ["p"])
    finding = only(entry_findings({**STDIO, "command": command, "args": args}, ["MH401"]))
    assert finding.edits == ()


@pytest.mark.requirement("npx-catalog-bare-form")
def test_the_shipped_entries_run_npx_in_its_bare_form_and_name_their_packages():
    assert findings(json.dumps(shipped_catalog()), ["MH401", "MH402", "MH403", "MH404", "MH405"]) == []


@pytest.mark.parametrize(
    ("args", "pointer"),
    [
        ([], "/a/args"),
        (["-y"], "/a/args"),
        (["-y", " "], "/a/args"),
        (..., "/a/command"),
    ],
)
@pytest.mark.parametrize("command", ["npx", "/usr/bin/npx", "bunx"])
def test_a_runner_without_a_package_can_never_start(command, args, pointer):
    entry = {**STDIO, "command": command} | ({} if args is ... else {"args": args})
    finding = only(entry_findings(entry, ["MH402", "MH406"]))
    assert (finding.rule, finding.place.pointer, finding.severity) == ("MH406", pointer, Severity.ERROR)
    context = catalog_context(json.dumps({"a": entry}))
    outcomes = judge(context.entries["a"], context, touched=True).outcomes
    assert {(outcome.state, outcome.detail) for outcome in outcomes} == {(State.FAILS, finding.message)}


@pytest.mark.parametrize("args", [["-c", "pkg --stdio"], ["--call=pkg"]])
def test_an_npx_entry_that_runs_a_script_is_a_warning_at_its_arguments(args):
    finding = only(entry_findings({**STDIO, "command": "npx", "args": args}, ["MH402", "MH406"]))
    assert (finding.rule, finding.place.pointer, finding.severity) == ("MH402", "/a/args", Severity.WARNING)


@pytest.mark.parametrize("args", ["pkg", [3], None])
def test_arguments_of_the_wrong_kind_are_left_to_the_schema(args):
    assert entry_findings({**STDIO, "command": "npx", "args": args}, ["MH402", "MH406"]) == []


@pytest.mark.parametrize("args", [["p"], ["-y", "p"], ["-p", "p", "run"], ["--package=p"], ["--", "p"]])
def test_a_package_in_any_form_that_npx_reads_is_readable(args):
    assert entry_findings({**STDIO, "command": "npx", "args": args}, ["MH402", "MH406"]) == []


@pytest.mark.requirement("npx-pin-operator-value-kept")
@pytest.mark.parametrize(("value", "count"), [("/op", 1), ("", 0), (" ", 0), (None, 0), (3, 0), ("${C}", 1)])
def test_a_cache_of_the_entrys_own_is_a_note_unless_it_is_blank(value, count):
    found = entry_findings({**NPX, "env": {"NPM_CONFIG_CACHE": value}}, ["MH405"])
    assert [finding.place.pointer for finding in found] == ["/a/env/NPM_CONFIG_CACHE"] * count
    assert all(finding.severity is Severity.NOTE for finding in found)


def test_a_cache_of_a_server_that_is_no_npx_entry_is_not_looked_at():
    assert entry_findings({**STDIO, "command": "node", "env": {"NPM_CONFIG_CACHE": "/op"}}, ["MH405"]) == []


@pytest.mark.requirement("npx-collide-detects")
def test_entries_with_the_same_packages_are_one_note_that_names_them_all():
    one, other = {**NPX, "args": ["-p", "x", "-p", "y", "run"]}, {**NPX, "args": ["-p", "y", "-p", "x", "other"]}
    finding = only(findings(json.dumps({"b": one, "odd": NPX, "a": other}), ["MH403"]))
    assert finding.message.startswith("runs x + y (_npx/")
    assert ") like a: each gets" in finding.message
    assert (finding.place.pointer, finding.severity, finding.entry) == ("/b/args", Severity.NOTE, "b")


@pytest.mark.parametrize(
    "other",
    [
        {**NPX, "args": ["-y", "pkg@1.0.1"]},
        {**NPX, "args": ["-y", "pkg"]},
        {**NPX, "command": "/usr/bin/npx"},
        {**NPX, "type": "http"},
        {**NPX, "args": []},
    ],
)
def test_another_version_another_spelling_and_no_package_do_not_collide(other):
    assert findings(json.dumps({"a": NPX, "b": other}), ["MH403"]) == []


@pytest.mark.requirement("npx-layout-name-collision")
def test_names_with_one_isolated_directory_are_a_warning_at_the_first_of_them():
    tree = {"a": NPX, "e$": NPX, "e_": NPX, "e.": {**NPX, "args": ["other"]}}
    finding = only(findings(json.dumps(tree, indent=1), ["MH404"]))
    assert finding.message.startswith("has the isolated npm cache e_, like e_, because")
    assert (finding.place.pointer, finding.entry, finding.severity) == ("/e$", "e$", Severity.WARNING)


def test_names_that_share_a_directory_but_no_package_need_no_isolated_cache():
    assert findings(json.dumps({"e$": NPX, "e_": {**NPX, "args": ["other@1.0.0"]}}), ["MH404"]) == []


FLOATING = [
    *("pkg", "@s/p", "pkg@", "pkg@latest", "pkg@next", "pkg@alpha", "pkg@rc", "pkg@*", "pkg@x", "pkg@^1", "pkg@~1.2.3"),
    *("pkg@1", "pkg@1.2", "pkg@1.x", "pkg@1.2.x", "pkg@>=1.0.0", "pkg@1.0.0 || 2.0.0", "pkg@1.0.0 - 2.0.0"),
    *("@s/p@latest", "@s/p@2", "pkg@npm:other", "pkg@npm:@s/other@^1", " pkg ", "pkg@v1"),
    *(
        "user/repo",
        "github:user/repo",
        "user/repo#main",
        "git+https://github.com/u/r.git",
        "git+ssh://git@h/u/r.git#dev",
    ),
    *("https://github.com/u/r", "pkg@git+https://h/u/r.git", "pkg@u/r", "git@github.com:u/r.git", "gist:abc"),
    "github:u/r#semver:^1",
]
PINNED = [
    *("pkg@1.2.3", "@s/p@1.0.0", "pkg@v1.2.3", "pkg@=1.2.3", "pkg@1.2.3-beta.1", "pkg@1.2.3+build.5", "pkg@0.0.0-x"),
    *("pkg@npm:other@1.0.0", "pkg@npm:@s/other@1.0.0", "file:../p", "./p", "../p", "/opt/p", "~/p", ".", "C:\\p"),
    *("pkg.tgz", "https://h/p-1.0.0.tgz", "https://h/api/package", "pkg@https://h/p.tgz", "pkg@file:../p"),
    *("u/r#0123456789abcdef0123456789abcdef01234567", "github:u/r#v1.2.3", "git+https://h/u/r.git#1.0.0"),
    *("u/r#semver:1.2.3", "pkg@${VERSION}", "${PACKAGE}", "@s/p@1.0.${PATCH}"),
]


@pytest.mark.parametrize("spec", FLOATING)
def test_a_tag_a_range_and_a_branch_float(spec):
    assert floats(spec)


@pytest.mark.parametrize("spec", PINNED)
def test_a_version_a_commit_and_a_local_path_do_not_float(spec):
    assert not floats(spec)


def test_all_floating_entries_are_one_note_at_the_first_of_them():
    tree = {"pinned": NPX, "b": {**NPX, "args": ["-p", "x@1.0.0", "-p", "y", "run"]}}
    text = json.dumps(tree, indent=2)
    finding = only(findings(text, ["MH431"]))
    assert finding.message.startswith("1 npx entry floats on a tag or range:")
    assert (finding.place.pointer, finding.severity) == ("/b/args", Severity.NOTE)
    finding = only(findings(json.dumps(tree | {name: {**NPX, "args": [name]} for name in "cdefgh"}), ["MH431"]))
    assert "7 npx entries float on a tag or range (b, c, d, e, f and 2 more)" in finding.message


def test_pinned_packages_are_no_note():
    assert findings(json.dumps({"a": NPX}), ["MH431"]) == []


LAUNCHED = [
    ("uvx", ["pkg"], True),
    ("uvx", ["pkg@latest"], True),
    ("uvx", ["pkg[extra]>=1", "--x"], True),
    ("uvx", ["--from", "pkg", "tool"], True),
    ("uvx", ["--from=git+https://github.com/a/b", "tool"], True),
    ("uvx", ["--from", "git+https://github.com/a/b@main", "tool"], True),
    ("uv", ["tool", "run", "pkg"], True),
    ("pipx", ["run", "pkg"], True),
    ("pipx", ["run", "--spec", "pkg>1", "tool"], True),
    ("docker", ["run", "-i", "--rm", "image"], True),
    ("docker", ["run", "-i", "--rm", "ghcr.io/a/image:latest", "arg:1"], True),
    ("podman", ["run", "-i", "-e", "A:1", "localhost:5000/image"], True),
    ("bunx", ["pkg"], True),
    ("pnpm", ["dlx", "pkg@latest"], True),
    ("npm", ["exec", "-y", "--", "pkg"], True),
    ("uvx", ["pkg==1.2.3"], False),
    ("uvx", ["pkg[extra]==1.2"], False),
    ("uvx", ["pkg@1.2.3"], False),
    ("uvx", ["--python", "3.12", "--from", "pkg==1.2.3", "tool"], False),
    ("uvx", ["--from", "git+https://github.com/a/b.git@v1.2.3", "tool"], False),
    ("uvx", ["--from", "pkg @ git+https://github.com/a/b@0123abc", "tool"], False),
    ("uvx", ["--from", "./server", "tool"], False),
    ("uvx", ["pkg==${VERSION}"], False),
    ("uv", ["run", "server.py"], False),
    ("uv", ["--directory", "/srv", "run", "server"], False),
    ("pipx", ["run", "--spec=pkg==1.0", "tool"], False),
    ("docker", ["run", "-i", "--rm", "image:1.2"], False),
    ("docker", ["run", "-i", "image@sha256:0123"], False),
    ("docker", ["run", "-i", "image:${TAG}"], False),
    ("docker", ["exec", "-i", "container", "server"], False),
    ("bunx", ["pkg@1.0.0"], False),
    ("node", ["server.js"], False),
]


@pytest.mark.parametrize(("command", "args", "hit"), LAUNCHED)
def test_a_floating_version_is_told_for_every_launcher(command, args, hit):
    found = entry_findings({**STDIO, "command": command, "args": args}, ["MH431"])
    assert [finding.message for finding in found] == (
        ["1 entry floats on a tag or range: two spawns may run different code."] if hit else []
    )


def test_floating_entries_of_all_launchers_are_one_note():
    tree = {"a": {**NPX, "args": ["x"]}, "b": {**STDIO, "command": "uvx", "args": ["x"]}}
    assert only(findings(json.dumps(tree), ["MH431"])).message.startswith(
        "2 entries float on a tag or range (a and b):"
    )


@pytest.mark.parametrize(
    ("command", "args", "cold"),
    [
        ("npx", ["-y", "pkg"], True),
        ("sh", ["-c", "npx pkg"], True),
        ("bunx", ["pkg"], True),
        ("pnpm", ["dlx", "pkg"], True),
        ("npm", ["exec", "pkg"], True),
        ("uvx", ["pkg"], True),
        ("uv", ["run", "server.py"], True),
        ("uv", ["tool", "run", "pkg"], True),
        ("pipx", ["run", "pkg"], True),
        ("docker", ["run", "-i", "image"], True),
        ("podman", ["run", "-i", "image"], True),
        ("docker", ["exec", "-i", "name", "server"], False),
        ("node", ["server.js"], False),
        ("uv", ["pip", "list"], False),
    ],
)
def test_whatever_is_fetched_first_misses_the_first_request(command, args, cold):
    context = catalog_context(json.dumps({"a": {**STDIO, "command": command, "args": args}}), runtimes=["claude"])
    (outcome,) = judge(context.entries["a"], context, touched=True).outcomes
    assert (outcome.state, outcome.first_request) == (State.STARTS, "late" if cold else "yes")
