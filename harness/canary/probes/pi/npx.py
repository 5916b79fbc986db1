"""What Pi's adapter starts in place of `npx`: which npm cache it looks into, and what of that it remembers."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.canary.claims import Claim, probe
from harness.canary.probes.pi.ground import CACHE, RESOLVED, configure, session
from harness.canary.probes.witnesses import WITNESS
from harness.canary.trial import PATH, Trial

PROGRAM = """#!/bin/sh
printf '%s\\037%s\\037%s\\036' "$(basename "$0")" "$NPM_CONFIG_CACHE" "$*" >> "$PROGRAM_NOTES"
case "$(basename "$0") $1" in
  "npm config") echo "$ASKED_CACHE"; exit 0;;
  "npm exec") case "$*" in *bare-npm*) ;; *) exit 0;; esac;;
esac
exec "$WITNESS_PYTHON" -IS "$WITNESS" /dev/null '{}'
"""
"""Stands for npx, npm, node and all binaries: notes how it was started, then is a good server. npm installs nothing."""


class Case(NamedTuple):
    """An npx line; the packages that are in an npm cache under its names: the program's own or the entry's."""

    says: str
    args: tuple[str, ...]
    starts: str
    command: str = "npx"
    in_program: Mapping[str, str] = {}
    in_entry: Mapping[str, str] = {}
    relied_on: tuple[str, ...] = ()


INTERCEPTS, OWN_CACHE = ("npx-pi-resolver-intercepts",), ("npx-pi-resolver-process-cache",)
CASES: Mapping[str, Case] = {
    "cached": Case("a package in the program's cache is started by node", ("-y", "p-cached", "x"), "node",
                   in_program={"p-cached": "1.0.0"}, relied_on=INTERCEPTS),
    "entry-cache": Case("one in the entry's cache alone is installed, and then npx started with the entry's cache",
                        ("-y", "p-entry"), "npx", in_entry={"p-entry": "1.0.0"},
                        relied_on=(*OWN_CACHE, "npx-pi-fallback-uses-pin")),
    "exact": Case("an exact version that is there", ("-y", "p-exact@1.0.0"), "node", in_program={"p-exact": "1.0.0"}),
    "other-version": Case("an exact version that is not", ("-y", "p-other@2.0.0"), "npx",
                          in_program={"p-other": "1.0.0"}),
    "latest": Case("`@latest` takes any version that is there", ("-y", "p-latest@latest"), "node",
                   in_program={"p-latest": "1.0.0"}),
    "range": Case("a range does too", ("-y", "p-range@^3"), "node", in_program={"p-range": "1.0.0"}),
    "scoped": Case("a name with a scope", ("-y", "@s/p-scoped@1.0.0"), "node", in_program={"@s/p-scoped": "1.0.0"}),
    "no-yes": Case("without -y", ("p-noyes",), "node", in_program={"p-noyes": "1.0.0"}, relied_on=INTERCEPTS),
    "long-yes": Case("with --yes", ("--yes", "p-longyes"), "node", in_program={"p-longyes": "1.0.0"},
                     relied_on=INTERCEPTS),
    "package": Case("with -p and the binary's name", ("-y", "-p", "p-package", "p-package"), "node",
                    in_program={"p-package": "1.0.0"}, relied_on=INTERCEPTS),
    "package-equals": Case("with --package= and the binary's name", ("--package=p-equals", "p-equals", "x"), "node",
                           in_program={"p-equals": "1.0.0"}, relied_on=INTERCEPTS),
    "separator": Case("with -- behind the package", ("-y", "p-sep", "--", "--flag"), "node",
                      in_program={"p-sep": "1.0.0"}, relied_on=INTERCEPTS),
    "separator-first": Case("with -- in front of the binary", ("--package=p-first", "--", "p-first"), "npx",
                            in_program={"p-first": "1.0.0"}),
    "quiet": Case("any other flag leaves npx alone", ("-q", "p-quiet"), "npx", in_program={"p-quiet": "1.0.0"},
                  relied_on=INTERCEPTS),
    "npm-exec": Case("`npm exec --package` is taken over too", ("exec", "-y", "--package", "p-exec", "--", "p-exec"),
                     "node", "npm", in_program={"p-exec": "1.0.0"}, relied_on=INTERCEPTS),
    "npm-bare": Case("`npm exec` with a name alone is not", ("exec", "bare-npm"), "npm", "npm", relied_on=INTERCEPTS),
    "path": Case("npx by its path is not", ("-y", "p-path"), "npx", "PROGRAMS/npx", in_program={"p-path": "1.0.0"},
                 relied_on=INTERCEPTS),
    "shell": Case("npx in a shell is not", ("-c", "exec npx -y p-shell"), "npx", "sh", in_program={"p-shell": "1.0.0"},
                  relied_on=INTERCEPTS),
}  # fmt: skip


class Started(NamedTuple):
    """A program that was started: its name, the npm cache that it was given, its words."""

    name: str
    cache: str
    words: str


def becoming(program: str) -> Any:
    """True where that program was started at last."""
    return lambda seen: bool(seen) and seen[-1][0] == program


@probe(
    *(
        Claim(
            f"pi.npx.{name}",
            f"{case.says}: `{case.command} {' '.join(case.args)}` becomes {case.starts}",
            "seed 000",
            assumes=becoming(case.starts),
            relied_on=case.relied_on,
            affects="npx servers",
        )
        for name, case in CASES.items()
    ),
    Claim(
        "pi.npx.installs",
        "what is not in the cache is installed first, by `npm exec` into the cache of the program",
        "seed 000",
        assumes=lambda seen: seen == [["program", seen[0][1]]],
        relied_on=("npx-pi-resolver-process-cache", "npx-pi-resolver-30s-cap"),
        affects="npx servers",
    ),
    Claim("pi.npx.memory", "what `mcp-npx-cache.json` holds of a package", affects="npx servers"),
    Claim(
        "pi.npx.remembered",
        "what is remembered is started though the cache is another one now, and not after a day",
        assumes=["node", "npx"],
        affects="npx servers",
    ),
    Claim(
        "pi.npx.asked",
        "without NPM_CONFIG_CACHE the program asks npm for its cache",
        assumes=True,
        relied_on=OWN_CACHE,
        affects="npx servers",
        not_modelled="a fake takes npm's own default for what npm would answer",
    ),
    seconds=9.0,
)
def npx_lines(trial: Trial) -> Mapping[str, Any]:
    """All lines in one session; then what is remembered of one, young and old; then npm is asked."""
    programs = trial.home / "programs"
    for name in ("node", "npm", "npx"):
        path = trial.write(f"~/programs/{name}", PROGRAM)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    caches = {name: trial.folder / f"{name}-cache" for name in ("program", "entry", "other", "asked")}
    for case in CASES.values():
        for cache, packages in (("program", case.in_program), ("entry", case.in_entry)):
            for package, version in packages.items():
                install(caches[cache], package, version)
    install(caches["asked"], "p-asked", "1.0.0")
    environment = {
        "PATH": f"{programs}:{PATH}",
        "NPM_CONFIG_CACHE": str(caches["program"]),
        "ASKED_CACHE": str(caches["asked"]),
        "WITNESS": str(WITNESS),
        "WITNESS_PYTHON": sys.executable,
    }

    def line_of(command: str, args: tuple[str, ...]) -> dict[str, Any]:
        program = command.replace("PROGRAMS", str(programs))
        return {"command": program, "args": list(args), "env": {"NPM_CONFIG_CACHE": str(caches["entry"])}}

    def ran(name: str, servers: Mapping[str, Any], **other: str | None) -> list[Started]:
        notes = trial.folder / f"{name}.txt"
        trial.place(CACHE).unlink(missing_ok=True)
        configure(trial, servers)
        session(trial, env={**environment, "PROGRAM_NOTES": str(notes), **other})
        text = notes.read_text(encoding="utf-8") if notes.exists() else ""
        known = {str(path): cache for cache, path in caches.items()}
        found = [Started(*each.split("\x1f")) for each in text.split("\x1e") if each]
        return [each._replace(cache=known.get(each.cache, each.cache)) for each in found]

    with trial.modelled():
        all_lines = ran("all", {name: line_of(case.command, case.args) for name, case in CASES.items()})
        memory = trial.read_json(RESOLVED)
        remembered = {"young": line_of("npx", CASES["cached"].args)}
        young = ran("young", remembered, NPM_CONFIG_CACHE=str(caches["other"]))
        for entry in (aged := trial.read_json(RESOLVED))["entries"].values():
            entry["resolvedAt"] -= 25 * 3_600_000
        trial.write_json(RESOLVED, aged)
        old = ran("old", remembered, NPM_CONFIG_CACHE=str(caches["other"]))
        asked = ran("asked", {"asked": line_of("npx", ("-y", "p-asked"))}, NPM_CONFIG_CACHE=None)
    text = trial.normal(json.dumps({key: value for key, value in memory["entries"].items() if "p-cached" in key}))
    kept: dict[str, Any] = json.loads(text)
    entry = next(iter(kept.items()), ("", {"resolvedAt": None}))
    return {
        **{f"pi.npx.{name}": of_case(trial, all_lines, case) for name, case in CASES.items()},
        "pi.npx.installs": [
            [each.cache, each.words] for each in all_lines if each.name == "npm" and "p-entry" in each.words
        ],
        "pi.npx.memory": [
            memory["version"],
            entry[0],
            {**entry[1], "resolvedAt": type(entry[1]["resolvedAt"]).__name__},
        ],
        "pi.npx.remembered": [last_of(young), last_of(old)],
        "pi.npx.asked": last_of(asked) == "node",
    }


def of_case(trial: Trial, lines: list[Started], case: Case) -> list[list[str]]:
    """The last program that was started for a case, with the cache that it got and its words."""
    package = next(word for word in reversed(case.args) if "p-" in word or word == "bare-npm")
    name = next(part for part in package.replace("@s/", "").split() if part.startswith(("p-", "bare"))).partition("@")[
        0
    ]
    found = [each for each in lines if name in each.words and not each.words.endswith("-- node -e 1")]
    return [[each.name, each.cache, trial.normal(each.words)] for each in found[-1:]]


def last_of(lines: list[Started]) -> str | None:
    """The name of what was started last."""
    return lines[-1].name if lines else None


def install(cache: Path, package: str, version: str) -> None:
    """Put a package there as npm would."""
    binary = package.rpartition("/")[2]
    folder = cache / "_npx" / binary / "node_modules" / package
    folder.mkdir(parents=True)
    document = {"name": package, "version": version, "bin": {binary: "bin.js"}}
    (folder / "package.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "bin.js").write_text("#!/usr/bin/env node\n", encoding="utf-8")
