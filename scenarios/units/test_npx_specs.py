"""Packages of an npx entry, the directory npx keeps them in, and which spellings are in scope."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.gate.rules.npx import runs_npm_package_otherwise
from harness.reference.npx.specs import install_hash, install_key, is_npx_entry, package_specs

SHIPPED_CATALOG = Path(__file__).parents[2] / "mcp.json"


@pytest.mark.requirement("npx-spec-parse")
@pytest.mark.parametrize(
    ("args", "specs"),
    [
        (["-y", "p@latest"], ("p@latest",)),
        (["-y", "--prefix", "/tmp", "p"], ("p",)),
        (["-y", "--prefix=/tmp", "p"], ("p",)),
        (["-y", "--package", "cowsay@1.6.0", "--", "node", "--version"], ("cowsay@1.6.0",)),
        (["-p=cowsay@1.6.0", "cowsay"], ("cowsay@1.6.0",)),
        (["-p", "a@1", "-p", "b@2", "run"], ("a@1", "b@2")),
        (["-p", "a@1", "run", "-p", "b@2"], ("a@1",)),
        (["-y", "srv", "/data", "--readonly"], ("srv",)),
        (["-y", "--", "pkg@1", "arg"], ("pkg@1",)),
        (["--yes=true", "pkg"], ("pkg",)),
        (["-y=x", "--cache=/x", "pkg"], ("pkg",)),
        (["-c", "echo hi"], ()),
        (["--call", "echo hi", "pkg"], ("pkg",)),
        (["--node-options", "--inspect", "pkg"], ("pkg",)),
        (["--cache"], ()),
        (["pkg", "--cache"], ("pkg",)),
        (["-p"], ()),
        (["-p", "--", "pkg"], ("pkg",)),
        (["--package="], ()),
        (["--package=", "pkg"], ("pkg",)),
        (["-y"], ()),
        (["-y", ""], ()),
        ([None, 7, "pkg"], ("pkg",)),
        ([], ()),
        (None, ()),
        ("pkg", ()),
        ({"0": "pkg"}, ()),
    ],
)
def test_the_packages_are_the_named_ones_or_else_the_first_positional(args, specs):
    assert package_specs(args) == specs


@pytest.mark.requirement("npx-key-by-spec-only")
@pytest.mark.parametrize(
    ("args", "digest"),
    [
        (["cowsay@1.6.0"], "e3e1d528ee105f80"),
        (["-p", "is-odd@3.0.1", "-p", "cowsay@1.6.0", "run"], "f3d6fe49ce1f05b1"),
        (["-p", "cowsay@1.6.0", "-p", "is-odd@3.0.1", "other", "--flag"], "f3d6fe49ce1f05b1"),
        (["-y", "onepassword-mcp-server@latest", "--flag"], "04f14e66d79e7af4"),
        (["--yes", "onepassword-mcp-server@latest"], "04f14e66d79e7af4"),
        (["-y", "@upstash/context7-mcp@latest"], "c35ab75beed40a3c"),
        (["-y", "playwright-stealth-mcp-server@latest"], "a4bcc792b5155234"),
    ],
)
def test_the_install_directory_depends_on_the_sorted_packages_alone(args, digest):
    assert install_key(args) == digest


@pytest.mark.requirement("npx-key-includes-version-text")
def test_packages_are_compared_as_written():
    assert install_hash(["cowsay@1.6.0"]) == "e3e1d528ee105f80"
    assert install_hash(["cowsay@latest"]) == "3eeb5f00c91638ab"
    assert len({install_hash([spec]) for spec in ("pkg", "pkg@latest", "pkg@1.2.3")}) == 3


OTHER_SPELLINGS = {
    "absolute": {"command": "/usr/bin/npx", "args": ["-y", "p"]},
    "shell": {"command": "sh", "args": ["-c", "npx -y p"]},
    "npm": {"command": "npm", "args": ["exec", "p"]},
    "bunx": {"command": "bunx", "args": ["p"]},
    "pnpm": {"command": "pnpm", "args": ["dlx", "p"]},
    "windows": {"command": "npx.cmd", "args": ["-y", "p"]},
    "capitals": {"command": "NPX", "args": ["-y", "p"]},
}


@pytest.mark.requirement("npx-pin-scope-exact")
@pytest.mark.parametrize(
    "entry", [*OTHER_SPELLINGS.values(), {"url": "https://e/npx"}, "npx", None, {"command": ["npx"]}]
)
def test_only_the_exact_command_npx_is_in_scope(entry):
    assert not is_npx_entry(entry)
    assert is_npx_entry({"command": "npx"})


def departures(servers: dict[str, Any]) -> list[str]:
    return [name for name, entry in servers.items() if runs_npm_package_otherwise(entry) is not None]


@pytest.mark.requirement("npx-catalog-bare-form")
def test_another_spelling_of_npx_is_reported_and_not_rewritten():
    before = json.dumps(OTHER_SPELLINGS)
    assert departures(OTHER_SPELLINGS) == list(OTHER_SPELLINGS)
    assert json.dumps(OTHER_SPELLINGS) == before


@pytest.mark.requirement("npx-catalog-bare-form")
@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": ["-y", "p"]},
        {"command": "node", "args": ["npx"]},
        {"command": "sh", "args": ["-c", "exec my-npx-wrapper"]},
        {"command": "npm", "args": ["run", "exec"]},
        {"command": "uvx", "args": ["p"]},
        {"url": "https://e/mcp"},
        {"command": None},
        "junk",
    ],
)
def test_what_does_not_run_an_npm_package_otherwise_is_not_reported(entry):
    assert departures({"it": entry}) == []


@pytest.mark.requirement("npx-catalog-bare-form")
def test_the_shipped_entries_all_use_the_bare_form():
    assert departures(json.loads(SHIPPED_CATALOG.read_text())) == []
