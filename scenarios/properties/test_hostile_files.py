"""Whatever a file holds, the gate ends with a verdict or with one line: never a traceback, never a secret lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli import main

SHIPPED = (Path(__file__).parents[2] / "mcp.json").read_bytes()
MANY = 20_000 if settings.default is not None and settings.default.max_examples > 100 else 100
"""So many in the nightly run."""

KNOWN_KEYS = st.sampled_from(
    [
        "type",
        "command",
        "args",
        "env",
        "url",
        "headers",
        "oauth",
        "title",
        "unavailable",
        "startup_timeout_sec",
        "$schema",
    ]
)
TELLING = st.sampled_from(
    [
        "stdio",
        "sse",
        "http",
        "streamable-http",
        "npx",
        "-y",
        "a@latest",
        "${T}",
        "${t}",
        "${A:-${B}}",
        "!x",
        "https://x.test/mcp",
    ]
)
TEXT = st.one_of(TELLING, st.text(max_size=20))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(KNOWN_KEYS, st.text(max_size=10)), inner, max_size=6)
    ),
    max_leaves=12,
)
ENTRIES = st.dictionaries(KNOWN_KEYS, VALUES, max_size=8)
CATALOGS = st.dictionaries(st.one_of(st.text(max_size=12), KNOWN_KEYS), st.one_of(ENTRIES, VALUES), max_size=4)


def encoded(tree: object) -> bytes:
    """The file's bytes; NaN, infinities and lone surrogates come out as Python writes them."""
    return json.dumps(tree).encode()


@st.composite
def damaged(draw) -> bytes:
    """A slice of the shipped catalog with bytes cut out, overwritten and repeated."""
    content = bytearray(SHIPPED[: draw(st.integers(0, len(SHIPPED)))] if draw(st.booleans()) else SHIPPED)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(start + draw(st.integers(0, 40)), len(content))
        content[start:end] = draw(st.one_of(st.binary(max_size=6), st.just(bytes(content[start:end]) * 2)))
    return bytes(content)


FILES = st.one_of(
    st.binary(max_size=60),
    damaged(),
    CATALOGS.map(encoded),
    VALUES.map(encoded),
    CATALOGS.map(lambda t: b"\xef\xbb\xbf" + encoded(t)),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def judged(content: bytes, folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and report of one run in process; stderr must be empty or one line."""
    path = folder / "mcp.json"
    path.write_bytes(content)
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    code = main(["gate", str(path), "--format", f"json={report}", *arguments])
    return code, report.read_text() if report.exists() else ""


@given(content=FILES)
@settings(max_examples=MANY)
def test_any_bytes_end_in_a_verdict_or_in_one_line(folder, content):
    code, report = judged(content, folder)
    assert code in {0, 1, 2}
    assert (code == 2) == (report == "")
    if report:
        assert json.loads(report)["summary"]["exit_code"] == code


@given(content=FILES, base=FILES)
@settings(max_examples=50)
def test_any_two_files_can_be_compared(folder, content, base):
    (folder / "base.json").write_bytes(base)
    code, _ = judged(content, folder, "--base", str(folder / "base.json"))
    assert code in {0, 1, 2}


@given(content=FILES)
@settings(max_examples=50)
def test_fixing_ends_in_a_file_that_needs_no_more_fixing(folder, content):
    """One pass may uncover further fixes (two edits of one place); a few passes must be enough."""
    if judged(content, folder)[0] == 2:
        return
    path = folder / "mcp.json"
    for _ in range(4):
        before = path.read_bytes()
        assert main(["gate", str(path), "--fix", "--format", f"json={folder / 'report.json'}"]) in {0, 1}
        if path.read_bytes() == before:
            return
    raise AssertionError("the fixes do not come to an end")
