"""The manifest and what answers for it agree, both ways; and the frame that says so can fail."""

from __future__ import annotations

import textwrap

import pytest

from harness.errors import HarnessFault
from harness.requirements.coverage import load_matrix
from harness.requirements.manifest import (
    Area,
    Level,
    Manifest,
    Requirement,
    Status,
    load_manifest,
    read_area,
    read_areas,
)
from harness.requirements.matrix import Fault, FaultKind, Matrix
from harness.requirements.scan import scan_source
from harness.requirements.source_tree import require_source_root

# Done never goes back: areas.toml and this set must agree, so nobody takes an area back by editing one line.
DONE_AREAS = frozenset(
    {
        "authorize", "catalog", "credential-key", "flow", "gate", "https", "npx", "prepare", "readiness", "reconcile",
        "refresh", "requirement", "resume", "secrets", "startup-timeout", "store", "unavailable", "writers",
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return load_manifest()


def test_every_bound_rule_is_checked_and_every_check_names_a_rule():
    faults = load_matrix(require_source_root()).faults()
    assert not faults, "\n".join(["", *(fault.message for fault in faults)])


def test_an_area_that_is_done_stays_done(manifest):
    assert {name for name, area in manifest.areas.items() if area.status is Status.DONE} == DONE_AREAS


def test_the_manifest_is_read_whole(manifest):
    folder = require_source_root() / "harness" / "requirements" / "manifest"
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.toml")]
    assert len(manifest.requirements) == sum(text.count("[[requirement]]") for text in texts) > 1_000
    assert set(manifest.areas) == {rule.area for rule in manifest.requirements.values()}


def rule(name: str, level: str = "must", area: str = "toy") -> Requirement:
    return Requirement(f"{area}-{name}", area, Level(level), "It holds.", "000", "look")


def matrix(
    *rules: Requirement,
    status: str = "open",
    checks: tuple[str, ...] = (),
    variants: tuple[str, ...] = (),
    deferred: dict[str, str] | None = None,
    pending: dict[str, str] | None = None,
    unusable: tuple[str, ...] = (),
) -> Matrix:
    areas = {"toy": Area("toy", Status(status), deferred or {}, pending or {})}
    return Matrix(
        Manifest({each.id: each for each in rules}, areas),
        dict.fromkeys(checks, ("test_it",)),
        dict.fromkeys(variants, ("toy.bug",)),
        unusable,
    )


def kinds(faults: list[Fault]) -> list[tuple[str, str]]:
    return [(fault.kind.value, fault.id) for fault in faults]


MUST, SHOULD, MAY = rule("must"), rule("should", "should"), rule("may", "may")
TEN_SHOULDS = tuple(rule(f"should-{number}", "should") for number in range(10))
ALL_BUT_TWO = tuple(each.id for each in TEN_SHOULDS[2:])
LATER = "the spawner"


def test_a_covered_area_has_no_fault():
    covered = matrix(MUST, SHOULD, MAY, checks=("toy-must", "toy-should"), variants=("toy-must",))
    assert covered.faults() == []


FAULTY = [
    (
        "a must without check and variant",
        matrix(MUST),
        [("must-without-check", "toy-must"), ("must-without-variant", "toy-must")],
    ),
    (
        "a must without a variant",
        matrix(MUST, checks=("toy-must",)),
        [("must-without-variant", "toy-must")],
    ),
    (
        "a must with a variant but no check",
        matrix(MUST, variants=("toy-must",)),
        [("must-without-check", "toy-must")],
    ),
    (
        "a must of a done area",
        matrix(MUST, status="done"),
        [("must-without-check", "toy-must"), ("must-without-variant", "toy-must")],
    ),
    ("a should without a check", matrix(SHOULD), [("should-without-check", "toy-should")]),
    (
        "a should that only a variant names",
        matrix(SHOULD, variants=("toy-should",)),
        [("should-without-check", "toy-should")],
    ),
    (
        "two of ten shoulds deferred",
        matrix(*TEN_SHOULDS, checks=ALL_BUT_TWO, deferred={"toy-should-0": LATER, "toy-should-1": LATER}),
        [("too-many-deferred", "")],
    ),
    ("a check of an unknown id", matrix(MAY, checks=("toy-gone",)), [("unknown-id", "toy-gone")]),
    ("a variant of an unknown id", matrix(MAY, variants=("other-gone",)), [("unknown-id", "other-gone")]),
    (
        "a deferred id that is unknown",
        matrix(MAY, deferred={"toy-gone": LATER}),
        [("unknown-id", "toy-gone")],
    ),
    (
        "a pending id that is unknown",
        matrix(MAY, pending={"toy-gone": LATER}),
        [("unknown-id", "toy-gone")],
    ),
    (
        "a deferred may that is covered now",
        matrix(MAY, checks=("toy-may",), deferred={"toy-may": LATER}),
        [("covered-but-listed", "toy-may")],
    ),
    (
        "a pending must that is covered now",
        matrix(MUST, checks=("toy-must",), variants=("toy-must",), pending={"toy-must": LATER}),
        [("covered-but-listed", "toy-must")],
    ),
    (
        "a pending should that is checked now",
        matrix(SHOULD, checks=("toy-should",), pending={"toy-should": LATER}),
        [("covered-but-listed", "toy-should")],
    ),
    ("a deferred must", matrix(MUST, deferred={"toy-must": LATER}), [("wrong-level", "toy-must")]),
    ("a pending may", matrix(MAY, pending={"toy-may": LATER}), [("wrong-level", "toy-may")]),
    (
        "a pending entry of a done area",
        matrix(MUST, status="done", pending={"toy-must": LATER}),
        [("pending-in-done", "toy-must")],
    ),
    (
        "an entry in both lists",
        matrix(
            *TEN_SHOULDS,
            checks=ALL_BUT_TWO,
            deferred={"toy-should-0": LATER},
            pending=dict.fromkeys(("toy-should-0", "toy-should-1"), LATER),
        ),
        [("listed-twice", "toy-should-0")],
    ),
    ("a mark that counts for nothing", matrix(MAY, unusable=("test_x.py:3: computed",)), [("unusable-check", "")]),
    ("an area that the manifest does not have", matrix(), [("unknown-area", "")]),
    (
        "an area that areas.toml does not have",
        matrix(MAY)._replace(manifest=Manifest({MAY.id: MAY}, {})),
        [("area-not-listed", "")],
    ),
]


@pytest.mark.parametrize(("faulty", "expected"), [pytest.param(*row[1:], id=row[0]) for row in FAULTY])
def test_each_kind_of_fault_is_found_with_one_clear_message(faulty, expected):
    faults = faulty.faults()
    assert kinds(faults) == expected
    assert all(fault.message and "\n" not in fault.message for fault in faults)


def test_every_kind_of_fault_is_among_those_shown():
    assert {kind for _, _, expected in FAULTY for kind, _ in expected} == {kind.value for kind in FaultKind}


ONE_DEFERRED = {"toy-should-0": LATER}
ONE_PENDING = {"toy-should-1": LATER}
ALL_BUT_ONE = (*ALL_BUT_TWO, "toy-should-1")
ACCEPTED = [
    ("a planned area binds nothing", matrix(MUST, SHOULD, status="planned")),
    ("a must that waits for a later part", matrix(MUST, pending={"toy-must": LATER})),
    ("a checked must that waits for its variant", matrix(MUST, checks=("toy-must",), pending={"toy-must": LATER})),
    ("a should that waits for a later part", matrix(SHOULD, pending={"toy-should": LATER})),
    ("one of ten shoulds deferred", matrix(*TEN_SHOULDS, checks=ALL_BUT_ONE, deferred=ONE_DEFERRED)),
    (
        "pending shoulds do not count as deferred",
        matrix(*TEN_SHOULDS, checks=ALL_BUT_TWO, deferred=ONE_DEFERRED, pending=ONE_PENDING),
    ),
    ("a deferred may does not count among the shoulds", matrix(MAY, deferred={"toy-may": LATER})),
]


@pytest.mark.parametrize("accepted", [pytest.param(row[1], id=row[0]) for row in ACCEPTED])
def test_an_accepted_gap_is_no_fault(accepted):
    assert accepted.faults() == []


def test_a_summary_counts_a_must_as_covered_only_with_its_variant():
    summary = matrix(
        MUST, rule("other"), SHOULD, MAY, checks=("toy-must", "toy-other", "toy-may"), variants=("toy-other",)
    ).summary("toy")
    assert (summary.must_covered, summary.must) == (1, 2)
    assert (summary.should_covered, summary.should) == (0, 1)
    assert (summary.may_covered, summary.may) == (1, 1)


def test_the_gaps_tell_what_is_lacking_and_what_was_accepted_musts_first():
    gaps = matrix(SHOULD, MUST, checks=("toy-must",), pending={"toy-should": LATER}).gaps("toy")
    assert [(gap.requirement.id, gap.lacks, gap.accepted) for gap in gaps] == [
        ("toy-must", ("variant",), ""),
        ("toy-should", ("check",), f"pending: {LATER}"),
    ]


def test_an_unknown_id_is_put_down_to_the_area_with_the_longest_fitting_name():
    rules = {each.id: each for each in (rule("x", "may", "toy"), rule("x", "may", "toy-box"))}
    areas = {name: Area(name, Status.OPEN) for name in ("toy", "toy-box")}
    (fault,) = Matrix(Manifest(rules, areas), {"toy-box-gone": ("test_it",)}, {}).faults()
    assert fault.area == "toy-box"


SCANNED = """
    import pytest

    pytestmark = [pytest.mark.requirement("of-the-module"), pytest.mark.smoke]

    @pytest.mark.requirement("one", "two")
    @pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.requirement("of-a-parameter")), 2])
    def test_it(case): ...

    @pytest.mark.requirement("of-a-class")
    class TestAll:
        @pytest.mark.requirement("of-a-method")
        async def test_inside(self): ...

    @pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.requirement(*computed))])
    def test_vectors(case): ...
"""


def test_the_scan_finds_marks_on_modules_classes_tests_and_parameters():
    scan = scan_source("scenarios/units/test_x.py", textwrap.dedent(SCANNED))
    assert sorted(check.requirement for check in scan.checks) == [
        "of-a-class",
        "of-a-method",
        "of-a-parameter",
        "of-the-module",
        "one",
        "two",
    ]
    assert {check.test for check in scan.checks} == {"", "test_it", "TestAll", "test_inside"}
    assert scan.faults == ()
    assert scan.smoke_files == ("scenarios/units/test_x.py",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("@pytest.mark.requirement(ID)\ndef test_it(): ...", "string literals"),
        ("@pytest.mark.requirement('a', *IDS)\ndef test_it(): ...", "string literals"),
        ("@pytest.mark.requirement(f'a-{1}')\ndef test_it(): ...", "string literals"),
        ("@pytest.mark.requirement(ids='a')\ndef test_it(): ...", "string literals"),
        ("@pytest.mark.requirement()\ndef test_it(): ...", "string literals"),
        ("pytestmark = pytest.mark.requirement(ID)", "string literals"),
        ("@pytest.mark.requirement('a')\ndef helper(): ...", "does not collect"),
        ("@pytest.mark.requirement('a')\ndef test_it(:", "cannot be parsed"),
    ],
)
def test_a_mark_that_cannot_be_counted_is_a_fault_and_no_check(text, problem):
    scan = scan_source("test_x.py", text)
    assert scan.checks == ()
    (fault,) = scan.faults
    assert problem in fault.message


def test_a_mark_in_a_file_that_pytest_does_not_collect_is_a_fault():
    scan = scan_source("helpers.py", "@pytest.mark.requirement('a')\ndef test_it(): ...")
    assert (scan.checks, len(scan.faults)) == ((), 1)


ROW = """
    [[requirement]]
    id = "toy-x"
    statement = "It holds."
    level = "must"
    source = "000"
    check = "look"
"""


def test_a_requirement_has_its_defaults_and_its_incidents():
    (plain,) = read_area("toy", textwrap.dedent(ROW))
    assert (plain.mutant, plain.kind, plain.incidents, plain.note) == ("", "example", (), "")
    (told,) = read_area("toy", textwrap.dedent(ROW) + 'incidents = ["#64"]\nkind = "race"\n')
    assert (told.incidents, told.kind, told.level) == (("#64",), "race", Level.MUST)


@pytest.mark.parametrize(
    "text",
    [
        ROW + 'colour = "red"\n',
        ROW.replace('source = "000"', ""),
        ROW.replace('"toy-x"', '"other-x"'),
        ROW.replace('"must"', '"shall"'),
        ROW + 'kind = "guess"\n',
        "title = 1\n",
        "[[",
    ],
)
def test_a_malformed_requirement_is_a_fault_of_the_harness_that_names_the_file(text):
    with pytest.raises(HarnessFault, match=r"^toy\.toml: "):
        read_area("toy", textwrap.dedent(text))


@pytest.mark.parametrize(
    "text",
    [
        '[toy]\nstatus = "finished"',
        "[toy]\n",
        '[toy]\nstatus = "open"\nwaiting = 1',
        '[toy]\nstatus = "open"\ndeferred = {toy-x = ""}',
        '[toy]\nstatus = "open"\npending = ["toy-x"]',
        "toy = 1",
    ],
)
def test_a_malformed_area_is_a_fault_of_the_harness(text):
    with pytest.raises(HarnessFault, match=r"^areas\.toml: toy: "):
        read_areas(text)
