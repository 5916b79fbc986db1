"""Known-bad variants of the gate's course and of its rules on packages, names, roots and runtimes."""

from __future__ import annotations

from harness.gate.npm_commands import program
from harness.gate.rules.names import codex_takes_name as codex_takes_name_rule
from harness.reference.catalog.roots import unknown_default_roots as unknown_default_roots_rule
from harness.requirements.variants import variant

NPX_RULES = "harness.gate.rules.npx"
NAME_RULES = "harness.gate.rules.names"


@variant(f"{NPX_RULES}:runs_npm_package_otherwise", catches=("npx-catalog-bare-form",))
def only_the_command_itself_is_looked_at(entry):
    """Knows /usr/bin/npx and bunx, and misses what a shell, env or a package manager runs."""
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(command, str) or command == "npx":
        return None
    return command.strip() if program(command) in {"npx", "bunx", "pnpx"} else None


@variant(f"{NPX_RULES}:runs_npm_package_otherwise", catches=("npx-catalog-bare-form",))
def the_word_npx_anywhere_is_enough(entry):
    """Takes any argument that mentions npx for a way to run it."""
    words = [entry.get("command"), *(entry.get("args") or [])] if isinstance(entry, dict) else []
    told = [word for word in words if isinstance(word, str) and "npx" in word.lower()]
    return told[0] if told and words[0] != "npx" else None


@variant("harness.gate.npm_commands:program", catches=("npx-catalog-bare-form",))
def a_path_is_another_program(word):
    """Compares the whole word, so /usr/bin/npx and npx.cmd pass."""
    return word


@variant(f"{NAME_RULES}:codex_takes_name", catches=("catalog-name-codex-unsafe-lint",))
def a_valid_name_is_a_fit_name(name):
    """Treats schema validity as runtime validity."""
    return codex_takes_name_rule(name.translate(dict.fromkeys(map(ord, "$[]"))))


@variant(f"{NAME_RULES}:holds_delimiter", catches=("catalog-name-codex-unsafe-lint",))
def a_double_underscore_is_fine(name):
    """Lets a name hold what parts server and tool."""
    return False


@variant("harness.reference.catalog.roots:unknown_default_roots", catches=("catalog-default-unknown-root",))
def an_unknown_root_is_ignored_in_silence(catalog, known_roots, *, star=False):
    """Says nothing about a default that has no effect."""
    return ()


@variant("harness.reference.catalog.roots:unknown_default_roots", catches=("catalog-default-unknown-root",))
def only_the_first_unknown_root_is_reported(catalog, known_roots, *, star=False):
    """Stops at the first server with one, and takes every root for known where there is none."""
    return unknown_default_roots_rule(catalog, known_roots, star=star)[:1] if known_roots else ()
