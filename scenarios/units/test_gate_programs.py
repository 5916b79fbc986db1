"""What code a command line runs, whatever launcher stands in front of it."""

from __future__ import annotations

import shlex

import pytest

from harness.gate.programs import (
    CONTAINER,
    IMAGE,
    MAXIMUM_LAUNCHERS,
    MODULE,
    NPM,
    PROGRAM,
    PYTHON,
    SHELL_SCRIPT,
    Code,
    code_of,
    is_other_code,
)

LINES = [
    ("npx -y pkg@1", NPM, "pkg@1"),
    ("npx -p x -p y z", NPM, "x y"),
    ("/usr/bin/npx x", NPM, "x"),
    ("bunx x", NPM, "x"),
    ("npm exec -- x@1", NPM, "x@1"),
    ("npm exec --package=a b", NPM, "a"),
    ("pnpm dlx x", NPM, "x"),
    ("node /opt/npx-cli.js -y x", NPM, "x"),
    ("uvx mcp-server-git --repo x", PYTHON, "mcp-server-git"),
    ("uvx --from git+https://g.example.com/x tool", PYTHON, "git+https://g.example.com/x"),
    ("uv tool run x", PYTHON, "x"),
    ("pipx run --spec a b", PYTHON, "a"),
    ("uv run --directory /a server.py", "python script", "server.py"),
    ("uv run --with mcp python -m srv", MODULE, "srv"),
    ("docker run -i --rm -e A=b -v x:y mcp/fetch:1 arg", IMAGE, "mcp/fetch:1"),
    ("podman run --privileged evil", IMAGE, "evil"),
    ("docker exec -i box server", CONTAINER, "box"),
    ("docker compose up", PROGRAM, "docker"),
    ("node ./a.js --x", "node script", "./a.js"),
    ("node --require x a.js", "node script", "a.js"),
    ("python3 -m srv --x", MODULE, "srv"),
    ("python3.12 s.py", "python3.12 script", "s.py"),
    ("bun run s.ts", "bun script", "s.ts"),
    ("java -Xmx1g -jar x.jar", "java program", "x.jar"),
    ("node -e 1", "code in args, for node", ""),
    ("bash ./x.sh", "bash script", "./x.sh"),
    ("sh -c 'npx y'", NPM, "y"),
    ("bash -lc 'cd /x && node y'", SHELL_SCRIPT, ""),
    ("env -u X A=b timeout 5 npx z", NPM, "z"),
    ("op run -- uvx z", PYTHON, "z"),
    ("/opt/bin/thing --x", PROGRAM, "/opt/bin/thing"),
    ("npx", PROGRAM, "npx"),
    ("uvx", PROGRAM, "uvx"),
    ("docker run", PROGRAM, "docker"),
    ("env A=1", PROGRAM, "env"),
    ("node", PROGRAM, "node"),
]


@pytest.mark.parametrize(("line", "kind", "names"), LINES)
def test_the_code_behind_a_launcher_is_found(line, kind, names):
    command, *args = shlex.split(line)
    assert code_of({"command": command, "args": args}) == Code(kind, tuple(names.split()))


@pytest.mark.parametrize("entry", [{}, {"command": ""}, {"command": "  "}, {"command": 3}, {"args": ["x"]}])
def test_an_entry_without_a_command_runs_nothing(entry):
    assert code_of(entry) is None


@pytest.mark.parametrize("args", [None, "x", {"x": 1}, [1, None, ["x"]]])
def test_arguments_that_are_no_texts_are_left_out(args):
    assert code_of({"command": "npx", "args": args}) == Code(PROGRAM, ("npx",))


@pytest.mark.parametrize(
    ("launchers", "code"), [(MAXIMUM_LAUNCHERS, Code(NPM, ("x",))), (9_000, Code(PROGRAM, ("env",)))]
)
def test_launchers_are_looked_through_up_to_a_limit(launchers, code):
    assert code_of({"command": "env", "args": ["env"] * (launchers - 1) + ["npx", "x"]}) == code


def test_the_order_of_several_packages_makes_no_other_code():
    one, other = Code(NPM, ("x", "y")), Code(NPM, ("y", "x"))
    assert not is_other_code(one, other)
    assert not is_other_code(None, None)
    assert is_other_code(one, Code(NPM, ("x",)))
    assert is_other_code(one, Code(PYTHON, ("x", "y")))
    assert is_other_code(one, None)
