"""The heal on real trees: what it removes, and that it never reaches out of the clone's own cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scenarios.real_files.ground import (
    ANY_TREE,
    BIN,
    KEY,
    OTHER_KEY,
    PROGRAM,
    Ground,
    corrupt,
    ground,
    heal,
    install,
    listing,
)
from scenarios.real_files.users import NOBODY, as_nobody, for_each_user


def removed(place: Ground, *errors: str, clone: Path | str | None = None, base: Path | None = None) -> list[str]:
    """What one heal reports, told without the place of the ground."""
    result = heal(place, *errors, clone=clone, base=base)
    assert result.healed == bool(result.removed)
    return [place.relative(tree) for tree in result.removed]


SHARED = "home/.zimmer/clones/one/.npm-cache/_npx"
ISOLATED = "home/.zimmer/clones/one/.npm-cache/isolated/twin-a/_npx"


@pytest.mark.requirement("npx-heal-named-hash-only", "npx-heal-isolated-path", "npx-heal-missing-not-counted")
def test_the_tree_that_is_named_goes_with_all_it_holds_and_every_other_stays():
    def case(place: Ground) -> list[list[str]]:
        for root in (place.cache / "_npx", place.isolated):
            for key in (KEY, OTHER_KEY):
                install(root / key)
        kept = [listing(root / OTHER_KEY) for root in (place.cache / "_npx", place.isolated)]
        reports = [
            removed(place, corrupt(place.tree), corrupt(place.tree)),
            removed(place, corrupt(place.tree)),
            removed(place, corrupt(place.isolated / KEY)),
        ]
        assert [listing(root / OTHER_KEY) for root in (place.cache / "_npx", place.isolated)] == kept
        assert not place.tree.exists()
        assert not (place.isolated / KEY).exists()
        return reports

    assert for_each_user(case) == [[f"{SHARED}/{KEY}"], [], [f"{ISOLATED}/{KEY}"]]


@pytest.mark.requirement("npx-heal-bare-hash", "npx-heal-no-hash")
def test_a_bare_hash_and_no_hash_are_looked_for_in_every_root_on_disk():
    def case(place: Ground) -> list[list[str]]:
        for root in (place.cache / "_npx", place.isolated):
            install(root / KEY)
            install(root / OTHER_KEY)
        return [removed(place, corrupt(f"_npx/{KEY}")), removed(place, ANY_TREE), removed(place, ANY_TREE)]

    wanted = [[f"{SHARED}/{KEY}", f"{ISOLATED}/{KEY}"], [SHARED, ISOLATED], []]
    assert for_each_user(case) == wanted


def hostile(place: Ground, tree: Path) -> None:
    """Put into a tree all that could lead a removal astray."""
    modules = tree / "node_modules"
    (modules / "absolute").symlink_to(place.outside)
    (modules / "climbing").symlink_to("../../../../../../../../../outside")
    (modules / "file").symlink_to(place.outside / "precious")
    (modules / "dangling").symlink_to("nowhere")
    (modules / "loop").symlink_to("loop")
    (modules / "up").symlink_to("..")
    (modules / "root").symlink_to("/")
    (modules / "to-another-tree").symlink_to(place.cache / "_npx" / OTHER_KEY)
    os.mkfifo(modules / "pipe")
    for name in (b"new\nline", b"-rf", b"--no-preserve-root", b"\xff\xfe", b"quote'\"", b"*", b"...", b"\\", b"~"):
        directory = modules / os.fsdecode(name)
        directory.mkdir()
        (directory / os.fsdecode(name)).symlink_to(place.outside)
    os.link(place.outside / "precious", modules / "hard")


@pytest.mark.requirement("npx-heal-containment", "npx-layout-containment-resolved")
def test_a_hostile_tree_goes_and_nothing_that_its_links_lead_to():
    def case(place: Ground) -> list[str]:
        place.outside.mkdir()
        (place.outside / "precious").write_text("precious")
        install(place.tree)
        install(place.cache / "_npx" / OTHER_KEY)
        hostile(place, place.tree)
        kept = (place.outside, place.cache / "_npx" / OTHER_KEY)
        before = [listing(directory) for directory in kept]
        trees = removed(place, corrupt(place.tree))
        assert [listing(directory) for directory in kept] == before
        assert not place.tree.exists()
        return trees

    assert for_each_user(case) == [f"{SHARED}/{KEY}"]


TEXTS = {
    "the home's own npm directory": "{root}/home/.npm/_npx/{key}",
    "another base": "{root}/home/.zimmer/clones-evil/c/.npm-cache/_npx/{key}",
    "dots": "{clone}/../../../../outside/.npm-cache/_npx/{key}",
    "dots behind a link": "{clone}/door/../.npm-cache/_npx/{key}",
    "a link in the clone": "{clone}/door/.npm-cache/_npx/{key}",
    "a link for a cache": "{base}/two/.npm-cache/_npx/{key}",
    "a place that looks right": "{root}/outside/.npm-cache/_npx/{key}",
    "the sources of the clone": "{clone}/src/_npx/{key}",
}


@pytest.mark.requirement("npx-heal-containment", "npx-layout-containment-resolved")
@pytest.mark.parametrize("text", TEXTS)
def test_whatever_a_text_names_nothing_outside_of_the_clones_cache_is_removed(text):
    def case(place: Ground) -> list[str]:
        for directory in ("outside/.npm-cache", "home/.npm", "home/.zimmer/clones-evil/c/.npm-cache"):
            install(place.root / directory / "_npx" / KEY)
        install(place.clone / "src/_npx" / KEY)
        (place.clone / "door").symlink_to(place.outside)
        (place.base / "two").mkdir()
        (place.base / "two/.npm-cache").symlink_to(place.outside / ".npm-cache")
        before = listing(place.root)
        named = TEXTS[text].format(root=place.root, base=place.base, clone=place.clone, key=KEY)
        trees = removed(place, corrupt(named))
        assert listing(place.root) == before
        return trees

    assert for_each_user(case) == []


@pytest.mark.requirement("npx-layout-containment-resolved", "npx-heal-containment")
@pytest.mark.parametrize("part", [".npm-cache", ".npm-cache/_npx", f".npm-cache/_npx/{KEY}", ".npm-cache/isolated/x"])
@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_part_of_the_cache_that_is_a_link_to_outside_loses_nothing(part, through_a_link):
    def case(place: Ground) -> list[str]:
        install(place.outside / "_npx" / KEY)
        install(place.outside / "isolated/x/_npx" / KEY)
        link = place.clone / part
        link.parent.mkdir(parents=True)
        inside = part.partition(".npm-cache")[2].lstrip("/").removeprefix("isolated/x")
        link.symlink_to(place.outside / inside)
        (place.root / "clones").symlink_to(place.base)
        base = place.root / "clones" if through_a_link else place.base
        before, outside = listing(place.root), listing(place.outside)
        errors = [corrupt(f"{base}/one/.npm-cache/{root}/{KEY}") for root in ("_npx", "isolated/x/_npx")]
        trees = removed(place, *errors, corrupt(f"_npx/{KEY}"), clone=base / "one", base=base)
        assert listing(place.root) == before
        # A root of the clone's own goes with the link that is in it.
        roots = removed(place, ANY_TREE, clone=base / "one", base=base)
        assert listing(place.outside) == outside
        return [*trees, *roots]

    own = "clones" if through_a_link else "home/.zimmer/clones"
    assert for_each_user(case) == ([f"{own}/one/.npm-cache/_npx"] if part.endswith(KEY) else [])


@pytest.mark.requirement("npx-layout-symlinked-base-ok", "npx-heal-isolated-path")
@pytest.mark.parametrize("named", ["{root}/clones/alias", "{root}/home/.zimmer/clones/one"])
def test_a_clone_that_is_reached_through_links_is_healed_by_either_name(named):
    def case(place: Ground) -> list[str]:
        install(place.tree)
        install(place.isolated / KEY)
        (place.root / "clones").symlink_to(place.base)
        (place.base / "alias").symlink_to("one")
        name = named.format(root=place.root)
        errors = [corrupt(f"{name}/.npm-cache/{root}/{KEY}") for root in ("_npx", "isolated/twin-a/_npx")]
        trees = removed(place, *errors, clone=f"{place.root}/clones/alias/", base=place.root / "clones")
        assert (place.tree.exists(), (place.isolated / KEY).exists()) == (False, False)
        return trees

    own = named.format(root="").lstrip("/")
    assert for_each_user(case) == [f"{own}/.npm-cache/{root}/{KEY}" for root in ("_npx", "isolated/twin-a/_npx")]


@pytest.mark.requirement("npx-heal-named-hash-only")
def test_a_tree_that_is_a_link_inside_its_root_loses_the_link_alone():
    def case(place: Ground) -> list[str]:
        install(place.cache / "_npx" / OTHER_KEY)
        place.tree.symlink_to(OTHER_KEY)
        before = listing(place.cache / "_npx" / OTHER_KEY)
        trees = removed(place, corrupt(place.tree))
        assert not os.path.lexists(place.tree)
        assert listing(place.cache / "_npx" / OTHER_KEY) == before
        return trees

    assert for_each_user(case) == [f"{SHARED}/{KEY}"]


@pytest.mark.requirement("npx-heal-missing-not-counted", "npx-heal-error-safe")
def test_a_file_or_nothing_where_a_tree_is_expected_is_no_repair():
    def case(place: Ground) -> list[list[str]]:
        (place.cache / "_npx").mkdir(parents=True)
        place.tree.write_text("no tree")
        found = [removed(place, corrupt(place.tree)), removed(place, corrupt(place.cache / "_npx" / OTHER_KEY))]
        assert place.tree.read_text() == "no tree"
        return found

    assert for_each_user(case) == [[], []]


@pytest.mark.requirement("npx-heal-error-safe")
def test_a_tree_that_the_user_may_not_remove_stops_no_other():
    def case(place: Ground) -> tuple[list[str], bool]:
        install(place.tree)
        install(place.isolated / KEY)
        (place.tree / "node_modules").chmod(0o555)
        trees = removed(place, corrupt(place.tree), corrupt(place.isolated / KEY))
        return trees, (place.tree / PROGRAM).exists() or (place.tree / BIN).exists()

    with ground() as place:
        if os.geteuid() == 0:
            os.chown(place.root, NOBODY, NOBODY)
            trees, is_left = as_nobody(lambda: case(place))
        else:
            trees, is_left = case(place)
        assert (trees, is_left) == ([f"{ISOLATED}/{KEY}"], True)


@pytest.mark.requirement("npx-heal-error-safe")
@pytest.mark.parametrize("levels", [200, 1200])
def test_a_tree_however_deep_raises_nothing_and_stops_no_other(levels):
    def case(place: Ground) -> list[str]:
        install(place.tree)
        install(place.isolated / KEY)
        descriptor = os.open(place.tree / "node_modules", os.O_RDONLY)
        for _ in range(levels):
            os.mkdir("d", dir_fd=descriptor)
            inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        os.close(descriptor)
        return removed(place, corrupt(place.tree), corrupt(place.isolated / KEY))

    assert for_each_user(case) == [f"{SHARED}/{KEY}", f"{ISOLATED}/{KEY}"]
