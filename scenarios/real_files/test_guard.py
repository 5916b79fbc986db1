"""The bin guard on real trees: what it repairs, what it refuses, and that nothing outside is ever changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scenarios.real_files.ground import BIN, KEY, OTHER_KEY, Ground, ground, guard, install, listing, mode_of
from scenarios.real_files.users import NOBODY, as_nobody, for_each_user

SHARED_LINK = f".npm-cache/_npx/{KEY}/{BIN}/cowsay"
SYSTEM_FILE = Path("/etc/passwd")
ISOLATED_LINK = f".npm-cache/isolated/twin-a/_npx/{KEY}/{BIN}/cowsay"


def repaired(place: Ground, **options: Path | str) -> list[str]:
    """The links that one run of the guard reports."""
    clone, base = options.get("clone"), options.get("base")
    return [repair.link for repair in guard(place, clone, Path(base) if base else None).repairs]


def foreign(place: Ground, *, mode: int = 0o644) -> Path:
    """A tree and a file outside of everything."""
    install(place.outside / "_npx" / KEY, mode=mode)
    escapee = place.outside / "escapee.js"
    escapee.write_text("secret\n")
    escapee.chmod(mode)
    return escapee


@pytest.mark.requirement("npx-guard-repairs-0644", "npx-guard-all-roots", "npx-guard-idempotent")
def test_a_program_without_its_execute_bit_can_run_afterwards_in_every_root():
    def case(place: Ground) -> list[object]:
        programs = [install(place.tree, mode=0o644), install(place.isolated / KEY, mode=0o644)]
        fine = install(place.cache / "_npx" / OTHER_KEY, mode=0o744)
        before = fine.stat()
        reports = [repaired(place), repaired(place)]
        assert fine.stat() == before
        assert all(os.access(program, os.X_OK) for program in programs)
        return [*reports, *(mode_of(program) for program in programs)]

    assert for_each_user(case) == [[SHARED_LINK, ISOLATED_LINK], [], 0o755, 0o755]


MODES = {
    0o644: 0o755,
    0o600: 0o700,
    0o640: 0o750,
    0o000: 0o100,
    0o4644: 0o755,
    0o222: 0o322,
    0o641: 0o641,
    0o1644: 0o755,
}


@pytest.mark.requirement("npx-guard-mode-mirror", "npx-guard-acts-on-modes")
def test_a_mode_follows_from_the_bits_alone_whoever_looks_and_whether_he_may_read_the_file():
    def case(place: Ground) -> dict[int, int]:
        programs = {mode: install(place.tree, name=f"p{mode:o}", mode=mode) for mode in MODES}
        guard(place)
        return {mode: mode_of(program) for mode, program in programs.items()}

    assert for_each_user(case) == MODES


@pytest.mark.requirement("npx-guard-shim-kinds")
def test_every_kind_of_thing_in_a_bin_directory_is_repaired_or_passed_over():
    def case(place: Ground) -> tuple[list[str], list[str], dict[str, int]]:
        program = install(place.tree, mode=0o644)
        shims = place.tree / BIN
        (shims / "absolute").symlink_to(program)
        (shims / "chained").symlink_to("cowsay")
        (shims / "dangling").symlink_to("../gone/index.js")
        (shims / "loop").symlink_to("loop")
        (shims / "to-a-directory").symlink_to("../cowsay")
        (shims / "to-itself").symlink_to(".")
        (shims / "through-a-file").symlink_to("../cowsay/dist/index.js/more")
        (shims / "directory").mkdir(mode=0o700)
        (shims / "directory/inner").write_text("")
        (shims / "directory/inner").chmod(0o644)
        regular = shims / "regular"
        regular.write_text("#!/bin/sh\n")
        regular.chmod(0o644)
        nested = install(place.tree / "node_modules/cowsay", name="nested", mode=0o644)
        plan = guard(place)
        files = {"program": program, "regular": regular, "nested": nested, "directory": shims / "directory"}
        links = [repair.link.rpartition("/")[2] for repair in plan.repairs]
        return links, list(plan.refusals), {name: mode_of(file) for name, file in files.items()}

    links, refusals, modes = for_each_user(case)
    assert links == ["absolute", "chained", "cowsay", "regular"]
    assert refusals == []
    assert modes == {"program": 0o755, "regular": 0o755, "nested": 0o644, "directory": 0o700}


@pytest.mark.requirement("npx-guard-shim-kinds")
def test_a_pipe_nobody_writes_to_and_a_socket_keep_nobody_waiting():
    with ground() as place:
        install(place.tree, mode=0o644)
        os.mkfifo(place.tree / BIN / "a-pipe", 0o644)
        os.mkfifo(place.cache / "_npx/pipe")
        os.mkfifo(place.cache / "isolated")
        assert SHARED_LINK in repaired(place)


NAMES = [
    b"new\nline",
    b"quote'\"`$(touch x)",
    b"-rf",
    b"--",
    b"\xff\xfe no utf-8",
    b"tab\tand space ",
    "ünï".encode(),
    b"*",
    b"a;b|c",
    b"\\",
    b"...",
]


@pytest.mark.requirement("npx-guard-repairs-0644", "npx-guard-shim-outside-refused")
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_only_a_name(name):
    def case(place: Ground) -> tuple[list[str], list[str], int]:
        foreign(place)
        package = place.tree / "node_modules" / os.fsdecode(name)
        (package / "dist").mkdir(parents=True)
        program = package / os.fsdecode(name)
        program.write_text("")
        program.chmod(0o644)
        shims = place.isolated.parent.parent / os.fsdecode(name) / "_npx" / KEY / BIN
        shims.mkdir(parents=True)
        (shims / "out").symlink_to(place.outside / "escapee.js")
        (place.tree / BIN).mkdir()
        (place.tree / BIN / os.fsdecode(name)).symlink_to(f"../{os.fsdecode(name)}/{os.fsdecode(name)}")
        before = listing(place.outside)
        plan = guard(place)
        assert listing(place.outside) == before
        return [repair.link for repair in plan.repairs], list(plan.refusals), mode_of(program)

    text = os.fsdecode(name)
    links, refusals, mode = for_each_user(case)
    assert links == [f".npm-cache/_npx/{KEY}/{BIN}/{text}"]
    assert refusals == [f".npm-cache/isolated/{text}/_npx/{KEY}/{BIN}/out"]
    assert mode == 0o755


ESCAPES = {
    "an absolute link": lambda place: place.outside / "escapee.js",
    "a climbing link": lambda place: "../../../../../../../../../outside/escapee.js",
    "a link to the outside by a link inside": lambda place: "../door/escapee.js",
    "a file of the system": lambda place: SYSTEM_FILE,
    "a link into another root": lambda place: place.isolated / KEY / "node_modules/cowsay/dist/index.js",
    "a link into the clone's own sources": lambda place: place.clone / "src/main.js",
    "a link that climbs from where a link leads": lambda place: "../door/../outside/escapee.js",
}


@pytest.mark.requirement(
    "npx-guard-shim-outside-refused", "npx-layout-containment-resolved", "npx-guard-roots-independent"
)
@pytest.mark.parametrize("escape", ESCAPES)
def test_a_link_that_leads_out_of_its_root_is_refused_and_what_it_leads_to_stays(escape):
    def case(place: Ground) -> tuple[list[str], list[str]]:
        foreign(place)
        install(place.isolated / KEY, mode=0o644)
        (place.isolated / KEY / BIN / "cowsay").unlink()
        (place.clone / "src").mkdir()
        (place.clone / "src/main.js").write_text("")
        (place.clone / "src/main.js").chmod(0o644)
        install(place.tree, mode=0o644)
        (place.tree / "node_modules/door").symlink_to(place.outside)
        (place.tree / BIN / "bad").symlink_to(ESCAPES[escape](place))
        others = (place.outside, place.isolated, place.clone / "src")
        before = [listing(directory) for directory in others]
        mode = mode_of(SYSTEM_FILE)
        plan = guard(place)
        assert [listing(directory) for directory in others] == before
        assert mode_of(SYSTEM_FILE) == mode
        return [repair.link for repair in plan.repairs], list(plan.refusals)

    links, refusals = for_each_user(case)
    assert links == [SHARED_LINK]
    system = escape == "a file of the system" and mode_of(SYSTEM_FILE) & 0o111
    assert refusals == ([] if system else [f".npm-cache/_npx/{KEY}/{BIN}/bad"])


def linked(link: Path, target: Path | str) -> None:
    """A link with the directories above it."""
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


# What of a cache is a link to outside; the shared root in the first ones, an isolated one in the others.
DOORS = {
    "the cache": (".npm-cache", "outside"),
    "the shared root": (".npm-cache/_npx", "outside/_npx"),
    "a tree": (f".npm-cache/_npx/{KEY}", f"outside/_npx/{KEY}"),
    "the modules of a tree": (f".npm-cache/_npx/{KEY}/node_modules", f"outside/_npx/{KEY}/node_modules"),
    "the bin directory of a tree": (f".npm-cache/_npx/{KEY}/{BIN}", f"outside/_npx/{KEY}/{BIN}"),
    "an isolated cache": (".npm-cache/isolated/x", "outside"),
    "all isolated caches": (".npm-cache/isolated", "outside/isolated"),
    "an isolated root": (".npm-cache/isolated/x/_npx", "outside/_npx"),
}


@pytest.mark.requirement(
    "npx-guard-root-outside-not-walked", "npx-layout-containment-resolved", "npx-guard-roots-independent"
)
@pytest.mark.parametrize("door", DOORS)
def test_a_part_of_a_cache_that_is_a_link_to_outside_is_not_walked_and_the_other_roots_are(door):
    def case(place: Ground) -> list[str]:
        foreign(place)
        install(place.outside / "isolated/x/_npx" / KEY, mode=0o644)
        link, target = DOORS[door]
        linked(place.clone / link, place.root / target)
        other = "_npx/" + OTHER_KEY if "isolated" in link else f"isolated/twin-a/_npx/{OTHER_KEY}"
        if door not in ("the cache",):
            install(place.cache / other, mode=0o644)
        before = listing(place.outside)
        links = repaired(place)
        assert listing(place.outside) == before
        return links

    other = "_npx" if "isolated" in DOORS[door][0] else "isolated/twin-a/_npx"
    wanted = [] if door == "the cache" else [f".npm-cache/{other}/{OTHER_KEY}/{BIN}/cowsay"]
    assert for_each_user(case) == wanted


@pytest.mark.requirement("npx-guard-root-outside-not-walked")
def test_a_root_that_is_a_link_to_another_clone_is_outside():
    def case(place: Ground) -> tuple[list[str], int]:
        program = install(place.base / "two/.npm-cache/_npx" / KEY, mode=0o644)
        linked(place.cache / "_npx", place.base / "two/.npm-cache/_npx")
        return repaired(place), mode_of(program)

    assert for_each_user(case) == ([], 0o644)


@pytest.mark.requirement("npx-guard-roots-independent", "npx-guard-never-blocks-spawn")
@pytest.mark.parametrize("bad", ["a directory nobody may read", "a directory nobody may enter", "a file", "a loop"])
def test_a_root_that_cannot_be_walked_stops_no_other(bad):
    def case(place: Ground) -> list[str]:
        install(place.cache / "isolated/z/_npx" / KEY, mode=0o644)
        root = place.cache / "_npx"
        if bad == "a file":
            root.write_text("")
        elif bad == "a loop":
            root.symlink_to("_npx")
        else:
            # Root may read it all the same, so what is in it needs no repair.
            install(place.tree, mode=0o755)
            root.chmod(0o311 if "read" in bad else 0o644)
        return repaired(place)

    assert for_each_user(case) == [f".npm-cache/isolated/z/_npx/{KEY}/{BIN}/cowsay"]


@pytest.mark.requirement("npx-guard-roots-independent", "npx-guard-never-blocks-spawn")
def test_who_may_not_read_a_directory_leaves_it_and_goes_on():
    def case(place: Ground) -> tuple[list[str], int]:
        locked = install(place.tree, mode=0o644)
        install(place.isolated / KEY, mode=0o644)
        (place.cache / "_npx").chmod(0)
        links = repaired(place)
        (place.cache / "_npx").chmod(0o755)
        return links, mode_of(locked)

    if os.geteuid() == 0:
        with ground() as place:
            os.chown(place.root, NOBODY, NOBODY)
            answer = as_nobody(lambda: case(place))
    else:
        with ground() as place:
            answer = case(place)
    assert answer == ([ISOLATED_LINK], 0o644)


@pytest.mark.requirement("npx-guard-shim-kinds")
def test_a_file_of_somebody_else_stops_no_other():
    """Only root can make one. Who is not root owns them all, and both are repaired."""
    with ground() as place:
        theirs, own = (install(place.tree, name=name, mode=0o644) for name in ("a", "b"))

        def case() -> list[str]:
            return [link.rpartition("/")[2] for link in repaired(place)]

        if os.geteuid() == 0:
            os.chown(own, NOBODY, NOBODY)
            assert as_nobody(case) == ["b"]
            assert [mode_of(theirs), mode_of(own)] == [0o644, 0o755]
            assert case() == ["a"]
        else:
            assert case() == ["a", "b"]
        assert [mode_of(theirs), mode_of(own)] == [0o755, 0o755]


@pytest.mark.requirement("npx-layout-symlinked-base-ok")
@pytest.mark.parametrize("suffix", ["", "/", "/.", "//"])
def test_a_clone_and_a_base_that_are_reached_through_links_are_guarded(suffix):
    def case(place: Ground) -> tuple[list[str], int]:
        program = install(place.tree, mode=0o644)
        (place.root / "clones").symlink_to(place.base)
        (place.base / "alias").symlink_to("one")
        # A link inside the clone that stays in it is followed.
        (place.cache / "isolated").mkdir()
        (place.cache / "isolated/x").symlink_to("..")
        links = repaired(place, clone=f"{place.root}/clones/alias{suffix}", base=place.root / "clones")
        return links, mode_of(program)

    links, mode = for_each_user(case)
    assert mode == 0o755
    assert SHARED_LINK in links


@pytest.mark.requirement("npx-guard-never-blocks-spawn")
def test_a_clone_that_is_a_link_out_of_the_base_or_is_no_directory_is_left_alone():
    def case(place: Ground) -> list[list[str]]:
        program = install(place.outside / ".npm-cache/_npx" / KEY, mode=0o644)
        place.base.mkdir(parents=True)
        (place.base / "door").symlink_to(place.outside)
        (place.base / "file").write_text("")
        (place.base / "empty").mkdir()
        clones = ("door", "file", "empty", "gone", "../../../outside")
        before = listing(place.outside)
        reports = [repaired(place, clone=f"{place.base}/{clone}") for clone in clones]
        assert listing(place.outside) == before
        assert mode_of(program) == 0o644
        return reports

    assert for_each_user(case) == [[]] * 5


@pytest.mark.requirement("npx-guard-never-blocks-spawn", "npx-guard-shim-kinds")
def test_a_path_as_long_as_the_system_takes_and_one_too_long_raise_nothing():
    def case(place: Ground) -> list[str]:
        install(place.tree, mode=0o644)
        long = "n" * 250
        deep = place.tree / BIN / "deep"
        deep.mkdir()
        descriptor = os.open(deep, os.O_RDONLY)
        try:
            for _ in range(20):
                os.mkdir(long, dir_fd=descriptor)
                inner = os.open(long, os.O_RDONLY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
        finally:
            os.close(descriptor)
        (place.tree / BIN / long).symlink_to("/".join(["deep", *[long] * 15]))
        (place.tree / BIN / "over").symlink_to("x" * 3000 + "/" + "y" * 500)
        return repaired(place)

    assert for_each_user(case) == [SHARED_LINK]
