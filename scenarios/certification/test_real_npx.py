"""The fake npx beside the one of npm: the trees they leave, their keys, what fails in them, and what mends it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fake_servers.npm import arguments
from harness.reference.npx import heal as heals
from harness.reference.npx import specs
from scenarios.certification.real_npx import (
    PIECES,
    RealProgramMissing,
    ended,
    folder,
    layout,
    npx_fake,
    npx_real,
    real,
    started,
    tarball,
)
from scenarios.real_files.ground import BIN, ground, guard, heal, mode_of

pytestmark = pytest.mark.filterwarnings(f"default::{RealProgramMissing.__module__}.{RealProgramMissing.__name__}")

# What npm 11.19.1 leaves in `_npx/<key>`, umask 022.
TREE = {
    "": ("directory", 0o755),
    "package.json": ("file", 0o644),
    "package-lock.json": ("file", 0o644),
    "node_modules": ("directory", 0o755),
    "node_modules/.package-lock.json": ("file", 0o644),
    "node_modules/.bin": ("directory", 0o755),
    "node_modules/.bin/cowsay": ("link to ../cowsay/dist/index.js", 0o777),
    "node_modules/cowsay": ("directory", 0o755),
    "node_modules/cowsay/package.json": ("file", 0o644),
    "node_modules/cowsay/dist": ("directory", 0o755),
    "node_modules/cowsay/dist/index.js": ("file", 0o755),
    **{f"node_modules/cowsay/dist/part-{number}.js": ("file", 0o644) for number in range(1, PIECES + 1)},
}
SHELLS_SAY_DENIED = (127, 126)  # dash, whose words the fake uses; bash
# The fake keeps no log of a run that went well, and looks its tarballs up without an index.
ONLY_REAL = ("_logs", "_cacache/index-v5", "_cacache/tmp")


def of_tree(found: dict[str, tuple[str, int]], key: str) -> dict[str, tuple[str, int]]:
    """What is in one tree, named from there."""
    place = f"_npx/{key}"
    return {path.removeprefix(place).lstrip("/"): entry for path, entry in found.items() if path.startswith(place)}


def shape(found: dict[str, tuple[str, int]]) -> list[tuple[str, int]]:
    """Where tarballs are kept, their digests left out: folders and files with the lengths of their names."""
    return [(kind, len(path)) for path, (kind, _) in found.items() if path.startswith("_cacache/content-v2")]


def only_key(cache: Path) -> str:
    """The one install directory of a cache."""
    (tree,) = (cache / "_npx").iterdir()
    return tree.name


@pytest.mark.requirement("npx-layout-shared-root", "npx-key-by-spec-only", "npx-sizes-and-cleanup")
def test_the_fake_leaves_the_tree_that_npx_leaves():
    npx = real("npx")
    with ground() as place:
        spec = tarball(place.root / "packages/cowsay-1.6.0.tgz")
        fake, certified = place.cache, place.root / "home/certified"
        assert npx_fake(place, fake, spec) == 0
        key = only_key(fake)
        assert key == specs.install_hash([spec])
        assert of_tree(layout(fake), key) == TREE
        if npx is None:
            return
        result = npx_real(npx, place, certified, spec, "hello")
        assert (result.code, result.out) == (0, "moo hello\n"), result.errors
        theirs = layout(certified)
        assert of_tree(theirs, key) == TREE
        assert {path for path in theirs if not path.startswith(ONLY_REAL)} - {*layout(fake)} <= {
            path for path in theirs if path.startswith("_cacache/content-v2")
        }
        assert shape(theirs) == shape(layout(fake))
        written = [json.loads((cache / "_npx" / key / "package.json").read_text()) for cache in (fake, certified)]
        assert [tree["_npx"] for tree in written] == [{"packages": [spec]}] * 2
        assert not (place.root / "home/.npm").exists()


SPECS = [
    "a-b@1",
    "a_b@1",
    "a.b@1",
    "ab@1",
    "@a/b",
    "@a/b@1",
    "@a/b@^1",
    "@a/b@~1",
    "b",
    "B",
    "a@1",
    "a-1",
    "a/1",
    "A",
    "1",
]
SORTED = [
    "@a/b",
    "@a/b@^1",
    "@a/b@~1",
    "@a/b@1",
    "1",
    "A",
    "a_b@1",
    "a-1",
    "a-b@1",
    "a.b@1",
    "a@1",
    "a/1",
    "ab@1",
    "b",
    "B",
]


@pytest.mark.requirement("npx-key-by-spec-only")
def test_specs_are_sorted_as_npm_sorts_them():
    node = real("node")
    texts = [*SPECS, *(chr(number) + other for number in range(33, 127) for other in ("", "a", "Z"))]
    assert sorted(SPECS, key=specs.collated) == SORTED
    assert sorted(texts, key=arguments.collated) == sorted(texts, key=specs.collated)
    if node is None:
        return
    script = (
        "const t = JSON.parse(process.argv[1]); console.log(JSON.stringify(t.sort((a, b) => a.localeCompare(b, 'en'))))"
    )
    answer = subprocess.run([node, "-e", script, json.dumps(texts)], capture_output=True, text=True, check=True).stdout
    assert json.loads(answer) == sorted(texts, key=specs.collated)


@pytest.mark.nightly
@pytest.mark.requirement("npx-guard-repairs-0644", "npx-guard-mode-mirror")
def test_the_guard_mends_a_tree_of_npm_whose_program_has_lost_its_execute_bit():
    npx = real("npx")
    with ground() as place:
        spec = tarball(place.root / "packages/cowsay-1.6.0.tgz")
        if npx is None:
            assert npx_fake(place, place.cache, spec) == 0
        else:
            assert npx_real(npx, place, place.cache, spec).code == 0
        program = place.cache / "_npx" / only_key(place.cache) / BIN / "cowsay"
        program.chmod(0o644)
        if npx is not None:
            denied = npx_real(npx, place, place.cache, spec)
            assert denied.code in SHELLS_SAY_DENIED
            assert denied.errors.endswith("cowsay: Permission denied\n")
        assert [repair.mode for repair in guard(place).repairs] == [0o755]
        assert mode_of(program) == 0o755
        if npx is not None:
            assert npx_real(npx, place, place.cache, spec, "again").out == "moo again\n"


def lose(file: Path) -> None:
    """Take a file away so that nothing but its absence tells."""
    before = file.parent.stat()
    file.unlink()
    os.utime(file.parent, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.nightly
@pytest.mark.requirement("npx-heal-detects", "npx-heal-named-hash-only", "npx-heal-then-retry-connects")
def test_the_heal_understands_what_node_says_of_half_a_tree_and_npx_installs_afresh():
    npx = real("npx")
    with ground() as place:
        spec = tarball(place.root / "packages/cowsay-1.6.0.tgz")
        assert (
            npx_fake(place, place.cache, spec) if npx is None else npx_real(npx, place, place.cache, spec).code
        ) == 0
        tree = place.cache / "_npx" / only_key(place.cache)
        lose(tree / "node_modules/cowsay/dist/part-2.js")
        broken = "" if npx is None else npx_real(npx, place, place.cache, spec).errors
        error = broken or f"Error: Cannot find module './part-2.js' - {tree}/node_modules/cowsay/dist/index.js"
        assert "Cannot find module './part-2.js'" in error
        assert heals.named_trees(error) == (str(tree),)
        assert heal(place, error).removed == (str(tree),)
        assert not tree.exists()
        if npx is not None:
            assert npx_real(npx, place, place.cache, spec, "again").out == "moo again\n"


@pytest.mark.nightly
@pytest.mark.requirement("npx-guard-shim-outside-refused")
def test_a_folder_is_keyed_by_its_path_and_linked_and_the_guard_leaves_what_is_outside():
    npx = real("npx")
    with ground() as place:
        folder(place.outside / "cowsay")
        key = specs.install_hash([str(place.outside / "cowsay")])
        spec = os.path.relpath(place.outside / "cowsay", place.clone)
        assert arguments.located(spec, str(place.clone)) == str(place.outside / "cowsay")
        assert arguments.located(f"file:{spec}", f"{place.clone}/") == str(place.outside / "cowsay")
        if npx is None:
            return
        assert npx_real(npx, place, place.cache, spec).code == 0
        assert only_key(place.cache) == key
        program = place.outside / "cowsay/dist/index.js"
        assert mode_of(program) == 0o755, "npm itself changes the mode of the folder's program"
        program.chmod(0o644)
        plan = guard(place)
        assert (plan.repairs, plan.refusals) == ((), (f".npm-cache/_npx/{key}/{BIN}/cowsay",))
        assert mode_of(program) == 0o644


@pytest.mark.nightly
@pytest.mark.requirement("npx-isolate-cold-race")
def test_two_of_todays_npx_on_one_cold_tree_wait_for_each_other_and_isolated_ones_need_not():
    """The race that isolation prevents is one of older npm; today's locks its tree, and leaves no lock behind."""
    npx = real("npx")
    with ground() as place:
        spec = tarball(place.root / "packages/cowsay-1.6.0.tgz")
        assert spec.startswith("file:/")
        if npx is None:
            return
        isolated = [place.cache / "isolated" / name for name in ("twin-a", "twin-b")]
        for caches in ([place.cache] * 2, isolated):
            running = [started(npx, place, cache, [spec, str(number)]) for number, cache in enumerate(caches)]
            results = [ended(process) for process in running]
            assert [(result.code, result.out) for result in results] == [(0, "moo 0\n"), (0, "moo 1\n")]
            for cache in caches:
                assert of_tree(layout(cache), only_key(cache)) == TREE
