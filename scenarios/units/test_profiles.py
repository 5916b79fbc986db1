"""Profiles: which there are, how they are spelled, and that each line of them is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fake_runtimes.profile import (
    PINNED,
    ClaudeProfile,
    CodexProfile,
    PiProfile,
    ProfileError,
    UnknownProfileError,
    known_profiles,
    load_profile,
    parse_runtime,
    read_profile,
)

SOURCES = Path(__file__).parents[2] / "fake_runtimes"
CLAUDE_TEXT = (SOURCES / "profiles" / "claude-2.1.268.toml").read_text()


MEASURED = (
    "claude-2.1.268",
    "claude-2.1.328",
    "codex-0.146.0",
    "codex-0.169.0",
    "pi-0.84.1+2.32.1",
    "pi-0.86.1+2.36.0",
)


def test_two_versions_of_each_runtime_are_measured_and_the_older_is_pinned():
    assert set(MEASURED) <= set(known_profiles())
    assert tuple(PINNED.values()) == MEASURED[::2]
    for name in known_profiles():
        profile = load_profile(name)
        assert (profile.name, f"{profile.runtime}-{profile.version}") == (name, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("claude@2.1.328", "claude-2.1.328"),
        ("pi@0.84.1+2.32.1", "pi-0.84.1+2.32.1"),
        ("codex", "codex-0.146.0"),
        ("codex-0.169.0", "codex-0.169.0"),
    ],
)
def test_a_runtime_is_spelled_with_its_version_or_bare(text, name):
    assert parse_runtime(text) == name


@pytest.mark.parametrize("text", ["", "claude@", "claude@9.9.9", "gemini", "gemini@1", "@2.1.268", "../claude-2.1.268"])
def test_an_unknown_runtime_is_refused_with_the_known_ones(text):
    with pytest.raises(UnknownProfileError) as refused:
        parse_runtime(text)
    assert "claude@2.1.268" in str(refused.value)
    with pytest.raises(UnknownProfileError):
        load_profile(text)


@pytest.mark.parametrize(
    "text",
    [
        CLAUDE_TEXT.replace("default_timeout_ms = 30000", ""),
        CLAUDE_TEXT + "\nsurprise = 1\n",
        CLAUDE_TEXT.replace("= 30000", '= "30000"'),
        CLAUDE_TEXT.replace("= 30000", "= true"),
        CLAUDE_TEXT.replace('"claude"', '"gemini"'),
        CLAUDE_TEXT.replace('"2.1.268"', '"2.1.269"'),
        CLAUDE_TEXT + "[",
    ],
)
def test_a_profile_that_does_not_fit_is_refused(text):
    assert text != CLAUDE_TEXT
    with pytest.raises(ProfileError):
        read_profile("claude-2.1.268", text)


@pytest.mark.parametrize("kind", [ClaudeProfile, CodexProfile, PiProfile])
def test_every_field_of_a_profile_is_read_by_its_runtime(kind):
    runtime = kind.__name__.removesuffix("Profile").lower()
    text = "".join(path.read_text() for path in (SOURCES / runtime).glob("*.py"))
    unread = [field for field in kind._fields[3:] if not re.search(rf"profile\.{field}\b", text)]
    assert unread == []


def test_the_two_versions_of_a_runtime_differ():
    for older, newer in zip(MEASURED[::2], MEASURED[1::2], strict=True):
        assert load_profile(older)[3:] != load_profile(newer)[3:]
