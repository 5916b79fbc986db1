"""The other side of a comparison in git: which commit a name stands for, and what is said when there is none."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import CannotRunError, UserInputError
from harness.inputs.git import MERGE_BASE, TIP_OF_SHALLOW, TIP_WITHOUT_HISTORY, names_file, read_at, resolve
from harness.inputs.git_advice import Clone, advice, is_path_like

FULL = "0123456789abcdef0123456789abcdef01234567"
ORIGIN = ("origin",)
MAIN = "+refs/heads/main:refs/remotes/origin/main"


def git(folder: Path, *arguments: str) -> str:
    settings = ["user.name=a", "user.email=a@example.com", "init.defaultBranch=main", "commit.gpgsign=false"]
    options = [part for setting in settings for part in ("-c", setting)]
    done = subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, text: str) -> str:
    (folder / "mcp.json").write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", text)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A branch `work` that left `main` at the first commit; main has gone on by one."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "first")
    git(folder, "checkout", "-qb", "work")
    commit(folder, "mine")
    git(folder, "checkout", "-q", "main")
    commit(folder, "theirs")
    git(folder, "checkout", "-q", "work")
    monkeypatch.chdir(folder)
    return folder


def refusal(ref: str, beside: Path | str = ".") -> str:
    with pytest.raises((CannotRunError, UserInputError)) as caught:
        resolve(ref, Path(beside))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_branch_stands_for_the_commit_where_the_work_left_it(repository):
    found = resolve("main", repository)
    first = git(repository, "rev-parse", "main~1")
    assert (found.commit, found.note) == (first, MERGE_BASE)
    assert found.label == f"main@{first[:7]} (merge base)"
    assert read_at(found, Path("mcp.json")) == b"first"


@pytest.mark.parametrize("ref", ["HEAD", "HEAD~1", "work", "main~1"])
def test_a_commit_behind_the_work_stands_for_itself(repository, ref):
    found = resolve(ref, repository)
    assert found.commit == git(repository, "rev-parse", ref)
    assert found.label == found.place == f"{ref}@{found.commit[:7]}"


def test_a_branch_without_common_history_stands_for_its_tip(repository):
    git(repository, "checkout", "-q", "--orphan", "other")
    tip = commit(repository, "other")
    git(repository, "checkout", "-q", "work")
    found = resolve("other", repository)
    assert (found.commit, found.note) == (tip, TIP_WITHOUT_HISTORY)
    assert "since it has no history in common with HEAD: what others" in found.caution


def test_a_shallow_clone_without_the_merge_base_takes_the_tip_and_says_so(repository, tmp_path):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", repository.as_uri(), str(clone))
    found = resolve("origin/main", clone)
    assert (found.commit, found.note) == (git(repository, "rev-parse", "main"), TIP_OF_SHALLOW)
    assert found.label.endswith("(tip; this shallow clone does not hold the merge base)")
    assert found.caution.startswith(
        f"compared with the tip of {found.place}, since this shallow clone does not hold the"
    )
    assert "git fetch --unshallow" in found.caution
    git(clone, "fetch", "-q", "--unshallow")
    assert resolve("origin/main", clone).note == MERGE_BASE
    assert resolve("origin/main", clone).caution == ""


def test_a_file_that_the_commit_does_not_have_is_none_and_a_damaged_one_is_told(repository):
    found = resolve("HEAD", repository)
    assert read_at(found, Path("other.json")) is None
    blob = git(repository, "rev-parse", "HEAD:mcp.json")
    damaged = repository / ".git" / "objects" / blob[:2] / blob[2:]
    damaged.chmod(0o600)
    damaged.write_bytes(b"")
    with pytest.raises(CannotRunError, match=r"git cannot read mcp\.json there: error: object file .* is empty"):
        read_at(found, Path("mcp.json"))


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("", "--base is empty. Name a file"),
        (" ", "--base is empty"),
        ("-x", "neither a file nor a git revision"),
        ("a b", "neither a file nor a git revision"),
        ("HEAD:mcp.json", "neither a file nor a git revision"),
        ("main..work", "is a range"),
        ("./old", "./old: no such file. Name a file"),
        ("old.json", "old.json: no such file"),
        ("no/such/base.JSON", "no/such/base.JSON: no such file"),
        (".", ".: is a folder"),
    ],
)
def test_a_text_that_is_no_revision_is_the_users_mistake(repository, ref, words):
    with pytest.raises(UserInputError) as caught:
        resolve(ref, repository)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("nobody", "this clone does not have it, and has no remote to fetch it from"),
        ("HEAD~9", "the history of HEAD has no such commit"),
        ("HEAD^2", "the history of HEAD has no such commit"),
        ("main@{upstream}", "git says: fatal: no upstream configured for branch 'main'"),
        ("HEAD^{tree}", "git says: error: HEAD^{tree}^{commit}: expected commit type"),
    ],
)
def test_a_revision_that_is_not_here_is_told_in_one_line(repository, ref, words):
    assert f"--base {ref}: {words}" in refusal(ref)


def test_a_repository_without_a_commit_says_so(tmp_path):
    git(tmp_path, "init", "-q")
    assert refusal("HEAD", tmp_path) == "--base HEAD: the repository has no commit yet."


def test_the_fetch_that_a_shallow_clone_is_told_to_run_works(repository, tmp_path):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", repository.as_uri(), str(clone))
    for ref, use in (("HEAD~1", "HEAD~1"), ("origin/main", "origin/main"), ("work~1", "work~1")):
        said = refusal(ref, clone) if ref != "work~1" else "Run: git fetch --deepen=1"
        command = said.split("Run: ")[1].split(" (or")[0].split(" (then")[0].split()
        git(clone, *command[1:])
        resolve(use, clone)
    git(clone, "update-ref", "-d", "refs/remotes/origin/main")
    said = refusal("main", clone)
    command = said.split("Run: ")[1].split(" (then")[0].split()
    git(clone, *command[1:])
    assert said.endswith(" (then --base origin/main)")
    resolve("origin/main", clone)


def test_what_git_itself_refuses_is_passed_on_with_the_command_that_it_names(repository, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    said = refusal("main")
    assert said.startswith("--base main: git says: fatal: detected dubious ownership in repository at ")
    assert f"Run: git config --global --add safe.directory {repository}" in said


def test_a_folder_in_no_repository_and_a_machine_without_git_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "is in no git repository. Name a file that holds the base." in refusal("main", tmp_path)
    assert refusal("old.json", tmp_path).startswith("old.json: no such file")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no git on PATH" in refusal("main", tmp_path)


def test_a_git_that_does_not_answer_is_given_up(repository, monkeypatch):
    def never(*_: object, **given: float) -> None:
        raise subprocess.TimeoutExpired("git", given["timeout"])

    monkeypatch.setattr("harness.inputs.git.subprocess.run", never)
    assert refusal("main") == "git rev-parse gave no answer in 60 s."


def test_a_folder_is_no_file_so_that_a_branch_may_be_called_like_it(repository):
    (repository / "main").mkdir()
    assert names_file("mcp.json")
    assert not any(map(names_file, ("main", "none", "", "\0", "x" * 5000)))
    assert resolve("main", repository).note == MERGE_BASE


ADVICE = [
    ("main", ORIGIN, False, f"Run: git fetch origin {MAIN} (then --base origin/main)"),
    ("main", ORIGIN, True, f"Run: git fetch --depth=1 origin {MAIN} (then --base origin/main)"),
    ("main~2", ORIGIN, False, f"Run: git fetch origin {MAIN} (then --base origin/main~2)"),
    ("refs/heads/main", ORIGIN, False, f"Run: git fetch origin {MAIN} (then --base origin/main)"),
    ("origin/main", ORIGIN, False, f"Run: git fetch origin {MAIN}"),
    ("refs/remotes/origin/main", ORIGIN, False, f"Run: git fetch origin {MAIN}"),
    ("origin/a/b", ORIGIN, True, "git fetch --depth=1 origin +refs/heads/a/b:refs/remotes/origin/a/b"),
    ("fork/x", ("origin", "fork"), False, "git fetch fork +refs/heads/x:refs/remotes/fork/x"),
    ("origin/x", ("fork",), False, "no remote of this clone is called origin (there is fork). Run: git fetch fork"),
    (
        "feature/x",
        ORIGIN,
        False,
        "refs/heads/feature/x:refs/remotes/origin/feature/x (then --base origin/feature/x)",
    ),
    ("v1.2.3", ORIGIN, False, "Run: git fetch origin +refs/tags/v1.2.3:refs/tags/v1.2.3"),
    ("refs/tags/one", ORIGIN, False, "Run: git fetch origin +refs/tags/one:refs/tags/one"),
    ("refs/pull/7/head", ORIGIN, False, "Run: git fetch origin +refs/pull/7/head:refs/pull/7/head"),
    (FULL, ORIGIN, True, f"does not have that commit. Run: git fetch --depth=1 origin {FULL}"),
    (FULL[:8], ORIGIN, True, "Run: git fetch --unshallow"),
    (FULL[:8], ORIGIN, False, "Run: git fetch origin"),
    ("main", (), False, "has no remote to fetch it from"),
    ("a;b", ORIGIN, False, "Run: git fetch origin '+refs/heads/a;b:refs/remotes/origin/a;b'"),
    ("HEAD~1", ORIGIN, True, "Run: git fetch --deepen=1 (or git fetch --unshallow for all of it)"),
    ("@~2^", ORIGIN, True, "Run: git fetch --deepen=3 "),
    ("HEAD^2", ORIGIN, True, "Run: git fetch --deepen=1 "),
    ("HEAD~1", (), True, "has no remote to fetch more from"),
]


@pytest.mark.parametrize(("ref", "remotes", "is_shallow", "words"), ADVICE)
def test_what_is_missing_names_the_command_that_brings_it(ref, remotes, is_shallow, words):
    holds: Callable[[str], bool] = {"HEAD"}.__contains__
    assert words in advice(ref, Clone(remotes, is_shallow, holds))


def test_a_branch_that_only_the_remote_has_needs_no_fetch():
    said = advice("main~1", Clone(ORIGIN, is_shallow=False, holds={"origin/main"}.__contains__))
    assert said == "this clone has no branch of that name, but it has origin/main. Use --base origin/main~1"


PATHS = ("./x", "../x", "/x", "~/x", "a/b.json", "x.bak")
NAMES = ("main", "origin/main", "v1.2.3", "HEAD~1", "release/1.0")


@pytest.mark.parametrize("text", [*PATHS, *NAMES])
def test_a_text_reads_like_a_path_by_its_ends(text):
    assert is_path_like(text) is (text in PATHS)
