"""Files, secret lists, tool lists and settings: what can be read is read, the rest is one line and exit code 2."""

from __future__ import annotations

import os

import pytest

from harness.errors import UserInputError
from harness.inputs.files import display_path, find_upward, folder_in_repository, read_bytes, replace_text
from harness.inputs.lists import read_known_secrets, read_secrets, read_tools
from harness.inputs.settings import read_settings

SECRET = "hunter2-hunter2"


def refused(call, *arguments) -> str:
    with pytest.raises(UserInputError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_a_missing_file_and_a_pipe_are_told_apart(tmp_path):
    assert "is a folder. Name the file, for instance" in refused(read_bytes, tmp_path)
    assert "no such file" in refused(read_bytes, tmp_path / "none.json")
    os.mkfifo(tmp_path / "pipe")
    assert "is no regular file" in refused(read_bytes, tmp_path / "pipe")
    assert "no such file" in refused(read_bytes, tmp_path / "nul\0name")
    assert "cannot be read: File name too long" in refused(read_bytes, tmp_path / ("x" * 300))


def test_paths_are_shown_relative_to_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert display_path(tmp_path / "mcp.json") == "../mcp.json"
    assert display_path(tmp_path / "sub" / "mcp.json") == "mcp.json"


def test_the_search_upwards_ends_at_the_top_of_the_repository(tmp_path, monkeypatch):
    (tmp_path / "mcp.json").write_text("{}")
    (tmp_path / "repo" / "deep" / "deeper").mkdir(parents=True)
    assert find_upward(tmp_path / "repo" / "deep", "mcp.json") == tmp_path / "mcp.json"
    (tmp_path / "repo" / ".git").mkdir()
    assert find_upward(tmp_path / "repo" / "deep", "mcp.json") is None
    monkeypatch.chdir(tmp_path / "repo" / "deep" / "deeper")
    assert folder_in_repository() == "deep/deeper"
    monkeypatch.chdir(tmp_path / "repo")
    assert folder_in_repository() == ""


def test_a_file_is_replaced_whole_keeping_its_mode_and_its_link(tmp_path):
    target, link = tmp_path / "real.json", tmp_path / "mcp.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    replace_text(link, "new\r\nline")
    assert target.read_bytes() == b"new\r\nline"
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mcp.json", "real.json"]


def test_secrets_are_read_from_lines_and_from_json(tmp_path):
    path = tmp_path / "secrets"
    path.write_text(f"# comment\n\nexport A='{SECRET}'\nB = \"b c\"\nC=x=y\nD=\n")
    assert read_secrets(path) == {"A": SECRET, "B": "b c", "C": "x=y", "D": ""}
    path.write_text('{"A": "1"}')
    assert read_secrets(path) == {"A": "1"}


@pytest.mark.parametrize("content", [f"A=1\n{SECRET}\n", f'{{"A": {{"x": "{SECRET}"}}}}', f'{{"A": "{SECRET}"'])
def test_an_unusable_secrets_file_is_refused_without_showing_a_value(tmp_path, content):
    path = tmp_path / "secrets"
    path.write_text(content)
    message = refused(read_secrets, path)
    assert SECRET not in message
    assert "secrets" in message


def test_known_names_are_read_from_lines_and_from_json_and_values_are_refused(tmp_path):
    path = tmp_path / "names"
    path.write_text("A\n# no\nB  # with a remark\n")
    assert read_known_secrets(path) == {"A", "B"}
    path.write_text('["A", "B"]')
    assert read_known_secrets(path) == {"A", "B"}
    path.write_text(f"A\nB={SECRET}\n")
    message = refused(read_known_secrets, path)
    assert SECRET not in message
    assert ":2:" in message


def test_tool_lists_take_names_and_objects_with_a_name(tmp_path):
    path = tmp_path / "tools.json"
    path.write_text('{"a": ["x", {"name": "y"}], "b": []}')
    assert read_tools(path) == {"a": ("x", "y"), "b": ()}
    path.write_text('{\n "a": ["x"],\n "b": "y"}')
    assert ":3:2: the tools of b are not a list of names" in refused(read_tools, path)
    path.write_text("[]")
    assert "not an object" in refused(read_tools, path)


def test_settings_remember_where_their_allowances_stand(tmp_path):
    path = tmp_path / "mcp-harness.toml"
    path.write_text(
        'fail_on = "warning"\n\n[[allow]]\nrule = "MH512"\nreason = "r"\nuntil = 2027-01-31\n'
        '\n[[allow]]\nrule = "MH431"\nreason = "s"\n'
    )
    settings = read_settings(path)
    assert settings.fail_on == "warning"
    assert settings.allow_lines == (3, 8)
    assert settings.allow[0].until is not None
    assert settings.folder == tmp_path


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("fail_on = ", ":1:", "not TOML"),
        ('\nfail_on = "loud"\n', ":2:", "fail_on"),
        ("\n\ncolour = true\n", ":3:", "colour"),
        ('[[allow]]\nrule = "MH1"\nreason = "r"\n', ":2:", "rule"),
        ('[[allow]]\nrule = "MH101"\nreason = "r"\n[[allow]]\nrule = "MH102"\nreason = ""\n', ":6:", "reason"),
        ('[[allow]]\nrule = "MH101"\nreason = "r"\nuntil = "soon"\n', ":4:", "until"),
        ('folder = "x"\n', ":1:", "folder"),
        ("allow = 3\n", ":1:", "allow"),
    ],
)
def test_a_faulty_setting_is_named_with_its_line_and_the_known_ones(tmp_path, text, place, words):
    path = tmp_path / "mcp-harness.toml"
    path.write_text(text)
    message = refused(read_settings, path)
    assert f"mcp-harness.toml{place}" in message
    assert words in message
