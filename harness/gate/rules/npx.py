"""Rules on how an entry runs an npm package. Source: seed 000 "Timeouts and caching"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from harness.gate.context import Context, EntryView
from harness.gate.edits import set_value
from harness.gate.launchers import command_line, floating
from harness.gate.model import Edit, Severity
from harness.gate.npm_commands import package_runner, program, runner_arguments
from harness.gate.rule import Hit, catalog_rule, entry_rule
from harness.gate.wording import joined
from harness.reference.npx.isolation import colliding, own_cache
from harness.reference.npx.layout import directory_name
from harness.reference.npx.specs import NPX, entry_specs, install_hash, is_npx_entry, package_specs

SCRIPT_FLAGS = ("-c", "--call")
"""With these npx runs a script in place of a package."""


def runs_npm_package_otherwise(entry: object) -> str | None:
    """How an entry runs an npm package in a form that is not exactly `npx`; None where it does not."""
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(command, str) or command == NPX:
        return None
    args = entry.get("args")
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    return package_runner([command.strip(), *words])


def npx_entries(context: Context) -> Mapping[str, Any]:
    """The entries that a runtime starts as exactly `npx`: a remote entry's command reaches none."""
    return {name: view.raw for name, view in context.entries.items() if runs_npx(view)}


def runs_npx(view: EntryView) -> bool:
    """Whether a runtime starts this entry as exactly `npx`."""
    return view.entry is not None and view.entry.stdio and is_npx_entry(view.raw)


@entry_rule(
    "MH401",
    Severity.WARNING,
    "an npm package run past the cache pinning",
    why=(
        "Pinning, isolation, healing and the bin guard know a server by the command being exactly `npx`. Any "
        "other spelling keeps the cache it inherits: on Codex that is the host-wide ~/.npm, where two sessions "
        "that install at once broke each other with ENOTEMPTY (#595)."
    ),
    fix='Write "command": "npx" and the package in args.',
    requirements=("npx-catalog-bare-form", "npx-pin-scope-exact"),
    incidents=("#595",),
)
def escapes_pinning(context: Context, view: EntryView) -> Iterator[Hit]:
    if view.entry is None or not view.entry.stdio:
        return
    form = runs_npm_package_otherwise(view.raw)
    if form is not None:
        yield Hit(
            (view.name, "command"),
            f"`{form}` installs outside the clone: no pinned cache, no isolation and no repair on any runtime,"
            " so two sessions can break each other's install.",
            edits=_bare_npx(context, view),
            subject=form,
        )


def _bare_npx(context: Context, view: EntryView) -> tuple[Edit, ...]:
    is_npx = program(view.fields["command"]) == NPX
    return set_value(context.document, (view.name, "command"), NPX) if is_npx else ()


@entry_rule(
    "MH402",
    Severity.WARNING,
    "an npx entry whose package cannot be read",
    why=(
        "Isolation compares package specs. An npx entry that runs a script (-c) names no package that Zimmer reads: it"
        " is pinned to the shared cache, where a twin with the same package races it on a cold clone."
    ),
    fix="Name the package as the first argument after the flags, or with --package.",
    requirements=("npx-pin-without-args",),
)
def unreadable_spec(_context: Context, view: EntryView) -> Iterator[Hit]:
    line = command_line(view.fields)
    if line and runs_npx(view) and not entry_specs(view.raw) and runs_script(line.args):
        yield Hit(
            (view.name, "args"),
            "no package can be read from the arguments: the server shares the clone's cache unprotected.",
        )


def runs_script(args: tuple[str, ...]) -> bool:
    """Whether a package runner gets a script to run."""
    return any(argument in SCRIPT_FLAGS or argument.startswith("--call=") for argument in args)


@entry_rule(
    "MH406",
    Severity.ERROR,
    "a package runner without a package",
    why=(
        "Without a package npx starts a shell, which takes the runtime's first message for a command line; the other"
        " runners print their help. Either way nothing answers, on every launch."
    ),
    fix="Name the package as the first argument after the flags.",
    never_starts=True,
)
def no_package(_context: Context, view: EntryView) -> Iterator[Hit]:
    line = command_line(view.fields)
    args = runner_arguments(*line) if line else None
    if line and args is not None and not package_specs(args) and not runs_script(args):
        yield Hit(
            (view.name, "args") if "args" in view.fields else (view.name, "command"),
            f"{program(line.command)} is given no package, so there is no server that could answer on any runtime.",
        )


@entry_rule(
    "MH405",
    Severity.NOTE,
    "an npx entry with a cache of its own",
    why=(
        "An entry that sets NPM_CONFIG_CACHE keeps it: that is the operator's call. Healing and the bin guard "
        "look at the clone's caches only, so a broken tree in that directory stays broken on every retry."
    ),
    fix="Leave NPM_CONFIG_CACHE out, unless the shared directory is meant.",
    requirements=("npx-pin-operator-value-kept",),
)
def own_npm_cache(_context: Context, view: EntryView) -> Iterator[Hit]:
    if runs_npx(view) and own_cache(view.raw) is not None:
        yield Hit(
            (view.name, "env", "NPM_CONFIG_CACHE"),
            "the entry's own npm cache is kept on every runtime; a corrupt install in it is never healed.",
        )


@catalog_rule(
    "MH403",
    Severity.NOTE,
    "two entries that run the byte-identical package",
    why=(
        "npx keys its install directory on the package spec alone, so two servers of one session with the "
        "same spec race to fill one tree on a cold clone. Zimmer gives each its own cache, and the package is "
        "downloaded once for each."
    ),
    fix="Nothing breaks; keep one entry where both serve the same purpose.",
    requirements=("npx-collide-detects", "npx-isolate-each"),
)
def identical_specs(context: Context) -> Iterator[Hit]:
    entries = npx_entries(context)
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in colliding(entries):
        groups[tuple(sorted(entry_specs(entries[name])))].append(name)
    for specs, names in groups.items():
        yield Hit(
            (names[0], "args"),
            f"runs {' + '.join(specs)} (_npx/{install_hash(specs)}) like {joined(names[1:])}: each gets an npm"
            " cache of its own, and a clone that has them all downloads the package that often.",
            others=tuple(names[1:]),
            subject=" ".join(specs),
        )


@catalog_rule(
    "MH404",
    Severity.WARNING,
    "two isolated caches that are one directory",
    why=(
        "The directory of an isolated cache is made from the server's name with every unusual character "
        "replaced. Two names that differ only there share the directory, and the race that isolation should end "
        "is back."
    ),
    fix="Rename one of them so that they differ in a letter or digit.",
    requirements=("npx-layout-name-collision",),
)
def isolated_directory_clash(context: Context) -> Iterator[Hit]:
    directories: dict[str, list[str]] = defaultdict(list)
    for name in colliding(npx_entries(context)):
        directories[directory_name(name)].append(name)
    for directory, names in directories.items():
        if len(names) > 1:
            yield Hit(
                (names[0],),
                f"has the isolated npm cache {directory}, like {joined(names[1:])}, because their names differ only in"
                " replaced characters: on a cold clone they can break each other's install.",
                others=tuple(names[1:]),
                subject=directory,
            )


@catalog_rule(
    "MH431",
    Severity.NOTE,
    "packages that float",
    why=(
        "`pkg`, `pkg@latest` and ranges are resolved anew in every cold clone, so two spawns may run "
        "different code, and a bad release reaches every session at once. Pi's own resolver does the reverse and "
        "keeps any cached version for @latest. The same holds for uvx and pipx, for the other package runners, and for"
        " a container's image without a tag or with :latest."
    ),
    fix="Pin a version (npx pkg@1.2.3, uvx pkg==1.2.3, image:1.2.3 or image@sha256:...).",
)
def floating_versions(context: Context) -> Iterator[Hit]:
    names = [name for name, view in context.entries.items() if view.entry is not None and floating(view.fields)]
    if names:
        what = "npx " if all(runs_npx(context.entries[name]) for name in names) else ""
        count = f"1 {what}entry floats" if len(names) == 1 else f"{len(names)} {what}entries float"
        listed = "" if len(names) == 1 else f" ({joined(names)})"
        yield Hit(
            (names[0], "args"),
            f"{count} on a tag or range{listed}: two spawns may run different code.",
            others=tuple(names[1:]),
            anchors=tuple((name, "args") for name in names),
        )
