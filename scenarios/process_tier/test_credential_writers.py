"""The writers of credentials on a real file system: locks between processes, kills, modes."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.reference.credentials.key import pi_account
from harness.reference.credentials.writers.store_file import LOCK_FILE
from harness.world.outside.controller import Controller
from scenarios.process_tier.credential_writers import STORE, KillAt, named, started, writer_of

WRITES = 12
MOST_POINTS = 60
THEIRS = {"claude": {"claudeAiOauth": {"a": 1}, "mcpOAuth": {"theirs|1": {}}}, "codex": {"theirs|1": {"x": 1}}}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short, as sockets want it."""
    with tempfile.TemporaryDirectory(prefix="w-") as name:
        yield Path(name).resolve()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def private(directory: Path) -> bool:
    """Whether nobody else can read any file of a directory."""
    return all(mode(path) & 0o077 == 0 for path in directory.rglob("*"))


@pytest.mark.requirement(
    "store-lock-cross-process",
    "store-three-writers-one-file",
    "store-lock-shared-with-account-writer",
    "store-atomic-replace",
    "writers-claude-lock",
)
def test_three_processes_that_write_one_store_lose_nothing_of_one_another_and_no_reader_sees_a_part(folder):
    store = folder / "claude" / STORE
    store.parent.mkdir(mode=0o700)
    store.write_text(json.dumps(THEIRS["claude"]))
    names = {actor: [f"{actor}{number}" for number in range(WRITES)] for actor in ("one", "two", "three")}
    kinds = {"one": "claude", "two": "claude", "three": "account"}
    forks = [started("", actor, kinds[actor], str(store.parent), names[actor]) for actor in names]
    reads = 0
    while any(fork._process.is_alive() for fork in forks):
        json.loads(store.read_bytes())
        reads += 1
    for fork in forks:
        fork.join()
    document = json.loads(store.read_bytes())
    assert set(document["mcpOAuth"]) == {
        "theirs|1", *(f"{name}|0123456789abcdef" for actor in ("one", "two") for name in names[actor])
    }  # fmt: skip
    assert document["claudeAiOauth"] == {"accessToken": names["three"][-1]}
    assert (mode(store), mode(store.parent / LOCK_FILE)) == (0o600, 0o600)
    assert sorted(path.name for path in store.parent.iterdir()) == [STORE, LOCK_FILE]
    assert reads > 0


@pytest.mark.requirement("writers-codex-no-lock", "store-codex-store-unlocked-race")
def test_processes_that_write_codexs_store_lose_nothing_of_one_another(folder):
    names = {actor: [f"{actor}{number}" for number in range(WRITES)] for actor in ("one", "two", "three")}
    forks = [started("", actor, "codex", str(folder / "codex"), names[actor]) for actor in names]
    for fork in forks:
        fork.join()
    document = json.loads((folder / "codex" / STORE).read_bytes())
    assert set(document) == {f"{name}|0123456789abcdef" for each in names.values() for name in each}


def steered(folder: Path, runtime: str, directory: Path, plan: KillAt) -> None:
    """One write of a process that is killed where the plan says."""
    controller = Controller(str(folder / "c"), launcher=lambda *_: None, endpoints={}, faults=plan)
    with controller:
        controller.register("writer", None, {})
        started(controller.path, "writer", runtime, str(directory), ["notion"]).join()
    (folder / "c").unlink(missing_ok=True)


@pytest.mark.requirement("writers-secret-file-mode", "store-atomic-replace", "store-lock-released-on-error")
@pytest.mark.parametrize("runtime", ["claude", "codex", "pi"])
def test_a_writer_killed_at_any_step_leaves_the_old_file_or_the_new_and_the_next_one_works(runtime, folder):
    whole = folder / "whole"
    whole.mkdir()
    place = f"{pi_account('notion')}/tokens.json" if runtime == "pi" else STORE
    before = json.dumps(THEIRS.get(runtime, {}))
    lay(whole / place, before)
    steered(folder, runtime, whole, KillAt(-1))
    new = (whole / place).read_text()
    labels = []
    for point in range(MOST_POINTS):
        directory = folder / str(point)
        lay(directory / place, before)
        plan = KillAt(point)
        steered(folder, runtime, directory, plan)
        if not plan.label:
            break
        labels.append(plan.label.replace(str(directory), ""))
        assert (directory / place).read_text() in (before, new), plan.label
        assert private((directory / place).parent), plan.label
        for left in (directory / place).parent.glob("*.tmp"):
            os.utime(left, (0, 0))  # long ago: a young one might be the runtime's
        started("", "next", runtime, str(directory), ["notion"]).join()
        assert (directory / place).read_text() == new
        assert [path for path in (directory / place).parent.iterdir() if path.suffix == ".tmp"] == []
    assert {f"write /{place}", f"rename /{place}", f"renamed /{place}"} <= set(labels)
    assert any(label.startswith("unlock") for label in labels)


def lay(path: Path, text: str) -> None:
    """A file as an earlier write left it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


@pytest.mark.requirement("writers-pi-plaintext-scope", "writers-pi-store-beats-file")
def test_pis_file_is_private_and_its_account_is_gone_before_by_the_helper_itself(folder):
    kept = folder / "ring" / "pi-mcp-adapter.oauth" / pi_account("notion")
    lay(kept, json.dumps({"serverUrl": "https://notion.test/mcp", "tokens": {"accessToken": "old"}}))
    directory = folder / "pi"
    mask = os.umask(0)
    try:
        started("", "writer", "pi", str(directory), ["notion"], str(folder / "ring")).join()
    finally:
        os.umask(mask)
    staged = directory / pi_account("notion") / "tokens.json"
    assert not kept.exists()
    assert json.loads(staged.read_text())["tokens"] == {"accessToken": named("notion").access_token}
    assert [mode(path) for path in (directory, staged.parent, staged)] == [0o700, 0o700, 0o600]


@pytest.mark.requirement("writers-secret-file-mode")
@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_a_store_that_others_could_read_is_narrowed_and_a_link_is_replaced(runtime, folder):
    store = Path(writer_of(runtime, str(folder / "d")).path)
    lay(store, "{}")
    store.chmod(0o644)
    started("", "writer", runtime, str(folder / "d"), ["notion"]).join()
    assert (mode(store), store.stat().st_nlink) == (0o600, 1)
    elsewhere = folder / "elsewhere"
    elsewhere.write_text("{}")
    store.unlink()
    store.symlink_to(elsewhere)
    started("", "writer", runtime, str(folder / "d"), ["notion"]).join()
    assert elsewhere.read_text() == "{}"
    assert not store.is_symlink()
    assert mode(store) == 0o600
