"""Catalog entries, addresses and paths of a scenario file: what is refused, what is told and played as it stands."""

from __future__ import annotations

import pytest

from harness.errors import UserInputError
from harness.scenario.addresses import fault_of, path_of, place_of, taken_apart
from harness.scenario.library import shipped
from harness.scenario.production import play
from harness.scenario.reading import load_scenario, read_scenario
from harness.scenario.verdicts import Verdict
from scenarios.playing import HEAD, SESSION, played, short

REMOTE = "[catalog.c]\ntype = 'streamable-http'\nurl = 'https://c.test/mcp'"
STDIO = "[catalog.c]\ntype = 'stdio'\ncommand = '/opt/c'"
EXPECT = "[[expect]]\nexit = 0"
GATE = "mcp-harness gate tells what becomes of such an entry."
AS = "[authorization.d]\n"


def refused(*parts: str, head: str = HEAD, session: str = SESSION) -> str:
    """What is said of a short scenario."""
    with pytest.raises(UserInputError) as caught:
        read_scenario(short(*parts, head=head, session=session), "my.toml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("url", ["ftp://x", "c.test/mcp", "ws://c.test", "/mcp", "mailto:a@b"])
def test_an_address_that_no_runtime_can_connect_to_is_refused(url):
    told = refused(f"[catalog.c]\ntype = 'streamable-http'\nurl = '{url}'")
    assert told.startswith("my.toml:17: [catalog.c] `url` does not begin with http:// or https://, so no runtime can")
    assert url not in told.partition("Write")[0]


@pytest.mark.parametrize("url", ["http://[::1/mcp", "https://x:99999/mcp", "https://x:y/", "https://", "http:///mcp"])
def test_an_address_that_cannot_be_taken_apart_is_refused_wherever_it_stands(url):
    told = "is no address that can be read"
    assert f"[catalog.c] `url` {told}" in refused(f"[catalog.c]\ntype = 'streamable-http'\nurl = '{url}'")
    assert f"[[step]] 1 `set` `url` {told}" in refused(f"[[step]]\nedit = 'b'\nset = {{ url = '{url}' }}")
    assert f"the issuer of [authorization.d] {told}" in refused(f"{AS}issuer = '{url}'")
    secret = f'secrets = {{ PLACE = "{url}" }}\n{HEAD}'
    assert f"[catalog.c] `url` {told}" in refused("[catalog.c]\ntype = 'sse'\nurl = '${PLACE}'", head=secret)


@pytest.mark.parametrize(
    "added",
    [
        f"{AS}clients = [{{ client_id = 'c', redirect_uris = ['http://[::1'] }}]",
        "[registered.b]\nauthorization_endpoint = 'http://[::1'",
        "[registered.b]\ntoken_endpoint = 'http://[::1'",
        "[server.b]\nprotected_by = 'd'\nresource = { url = 'http://[::1' }\n[authorization.d]",
    ],
)
def test_addresses_of_a_sign_in_can_be_taken_apart_too(added):
    assert "is no address that can be read" in refused(added)


def test_an_address_whose_secret_is_not_there_is_left_to_the_preparation():
    assert not read_scenario(short("[catalog.c]\ntype = 'sse'\nurl = '${PLACE}/mcp'")).warnings


def test_the_parts_of_an_address_are_told_and_of_none_nothing():
    assert (path_of("https://a.test:8/b?c"), place_of("https://a.test:8/b")) == ("/b", "a.test:8")
    assert (path_of("http://[::1"), place_of("https://x:99999")) == ("", "")
    assert taken_apart("//x") is not None
    assert fault_of("https://[::1]:5/x") == fault_of("http://a.test") == ""


@pytest.mark.parametrize(
    ("entry", "field", "is_not"),
    [
        (f"{REMOTE}\nheaders = ['a']", "headers", "is a list, not a table"),
        (f"{REMOTE}\nheaders = 5", "headers", "is a number, not a table"),
        (f"{REMOTE}\nheaders = 'x'", "headers", "is a text, not a table"),
        (f"{REMOTE}\noauth = 5", "oauth", "is a number, not a table"),
        ("[catalog.c]\ntype = 'sse'\nurl = 5", "url", "is a number, not a text"),
        (f"{STDIO}\nargs = '-y x'", "args", "is a text, not a list"),
        (f"{STDIO}\nenv = ['A=b']", "env", "is a list, not a table"),
        ("[catalog.c]\ntype = 'stdio'\ncommand = { a = 'b' }", "command", "is a table, not a text"),
        ("[catalog.c]\ntype = true\ncommand = '/opt/c'", "type", "is true or false, not a text"),
    ],
)
def test_a_field_of_which_nothing_can_be_made_is_refused(entry, field, is_not):
    told = refused(entry)
    assert f"[catalog.c] `{field}` {is_not}. Make it {is_not.rpartition('not ')[2]}; {GATE}" in told


def test_an_edit_is_held_to_the_same():
    assert "[[step]] 1 `set` `headers` is a number, not a table" in refused("[[step]]\nedit = 'b'\nset.headers = 5")
    assert not read_scenario(short("[[step]]\nedit = 'b'\nset = { headers = { A = 'b' } }")).warnings


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (f"{STDIO}\nargs = ['--depth', 3]", "my.toml:18: [catalog.c] `args` 2 is not a text"),
        (f"{REMOTE}\nheaders = {{ A = 5 }}", "[catalog.c] `headers` `A` is not a text"),
        (f"{STDIO}\nurl = 'https://c.test/'", "[catalog.c] `url` does not go with the entry's type"),
        ("[catalog.c]\ntype = 'stdoi'\ncommand = '/opt/c'", "[catalog.c] `type` is no value that AIR knows"),
        ("[catalog.c]\ncommand = '/opt/c'", "[catalog.c] lacks `type`"),
        ("[catalog.c]\ntype = 'stdio'", "[catalog.c] lacks `command`"),
    ],
)
def test_what_the_schema_refuses_is_told_and_played_unless_the_file_says_that_it_is_meant(entry, words):
    (warning,) = read_scenario(short(entry, EXPECT), "my.toml").warnings
    assert words in warning
    assert warning.endswith(", so `air validate` refuses the catalog")
    assert played(entry, EXPECT, runtime="pi").verdict not in (Verdict.CRASH, Verdict.HARNESS_ERROR)
    assert not read_scenario(short(entry, EXPECT, head=f"struck = ['c']\n{HEAD}")).warnings


def test_what_zimmer_and_air_prepare_take_is_not_told():
    for entry in ("type = 'http'\nurl = 'https://c.test/mcp'", "type = 'sse'\nurl = 'https://c.test/${KEY}'"):
        assert not read_scenario(short(f"[catalog.c]\n{entry}")).warnings


def test_a_shipped_scenario_still_shows_what_a_runtime_makes_of_a_bad_entry():
    scenario = load_scenario(shipped()["codex-entry-kills-run"])
    assert scenario.catalog["docs"]["args"] == ["--depth", 3]
    assert play(scenario, "codex").verdict is Verdict.PASS


def test_a_package_has_a_name_that_a_registry_can_have():
    told = refused(f"[catalog.c]\ntype = 'stdio'\ncommand = 'npx'\nargs = ['-y', '{'p' * 215}']")
    assert "[catalog.c] `args` names a package with more than 214 characters" in told
    assert read_scenario(short(f"[catalog.c]\ntype = 'stdio'\ncommand = 'npx'\nargs = ['-y', '{'p' * 214}']"))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "the path '' names nothing"),
        ("/", "the path '/' names nothing"),
        (".", "names nothing"),
        ("~/", "names nothing"),
        ("a/", "the path 'a/' names a folder"),
        ("a/../b", "climbs out"),
        (r"a\u0000", "holds a character that no path can have"),
        ("x" * 300, "the path has 300 characters, more than a system takes"),
        ("x/" * 1_200 + "y", "the path has 2,401 characters"),
    ],
)
def test_a_path_is_one_that_a_system_can_have(path, words):
    assert words in refused(f'[files]\n"{path}" = "y"')
    assert words in refused(f'[[step]]\nwrite = "{path}"\ntext = "y"')
    assert words in refused(f'[[expect]]\nfile = "{path}"\nabsent = true')


def test_files_do_not_stand_in_each_others_way():
    told = refused('[files]\n"a" = "x"\n"./a/b" = "y"')
    assert "my.toml:16: the path 'a' is a folder, which './a/b' lies in. Write the path of a file." in told
    for folder in ("/home", "~/.codex", "~/.zimmer/clones/S", "/home/agent/.zimmer"):
        assert "is a folder" in refused(f'[files]\n"{folder}" = "x"')
    assert read_scenario(short('[files]\n"a/b" = "x"\n"a/c" = "y"\n"~/.codex/config.toml" = ""'))


def test_a_write_that_cannot_be_done_leaves_the_run_untestable():
    report = played(
        "[[step]]\nwrite = 'a'\ntext = ''\nsession = 'S'\n[[step]]\nwrite = 'a/b'\ntext = ''\nsession = 'S'", EXPECT
    )
    assert report.verdict is Verdict.UNTESTABLE
    assert "S/a/b could not: File exists" in report.detail


@pytest.mark.parametrize("name", ["", " ", ".", "..", "a/b", "a#2", "x" * 101, r"a\u0007"])
def test_a_session_has_a_name_that_a_folder_can_have(name):
    assert "is no name for a session" in refused(session=f'[[step]]\nstart = "{name}"')


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ("access_seconds = -5", "access_seconds is -5, and it must be 0 or more"),
        ("code_seconds = -1", "code_seconds is -1"),
        ("grace_seconds = -0.5", "grace_seconds is -0.5"),
        ("hops = -1", "hops is -1"),
        ("hops = 101", "hops is 101, and it must be 0 or more, 100 at most"),
        ("statuses = { invalid_grant = 99 }", "statuses: invalid_grant is 99, which must be from 200 to 599"),
        ("statuses = { invalid_grant = '400' }", "statuses may hold whole numbers alone"),
        ("refuses = [{ a = 'b' }]", "refuses may hold texts alone"),
        ("scopes = [5]", "scopes may hold texts alone"),
        ("pages = { client = 5 }", "pages may hold texts alone"),
        ("error_bodies = { invalid_grant = 5 }", "error_bodies may hold tables alone"),
    ],
)
def test_a_provider_has_facts_that_one_can_have(fact, words):
    assert words in refused(f"{AS}set = {{ {fact} }}")
    assert words in refused(f"[[step]]\nprovider = 'd'\nset = {{ {fact} }}\n{AS}")


@pytest.mark.parametrize("fact", ["access_seconds = 0", "skew_seconds = -60", "hops = 0"])
def test_what_a_provider_can_be_is_taken(fact):
    assert read_scenario(short(f"{AS}set = {{ {fact} }}"))


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ("scopes = [5]", "a protected server: scopes may hold texts alone"),
        ("authorization_servers = [{}]", "a protected server: authorization_servers may hold texts alone"),
        ("authorization_servers = 'x'", "authorization_servers must be a list of texts"),
        ("status = 99", "refuses with a status from 200 to 599, not 99"),
        ("metadata_at = ['x']", "`metadata_at` may hold path, root or a path, not 'x'"),
    ],
)
def test_a_protected_server_says_what_one_can_say(fact, words):
    assert words in refused(f"[server.b]\nprotected_by = 'd'\nresource = {{ {fact} }}\n{AS}")


def test_a_value_is_shown_where_it_can_be_no_secret():
    assert "`watched` is 5, not true or false" in refused(head=f"watched = 5\n{HEAD}")
    assert '`exits` is "late"' in refused("[server.a]\nexits = 'late'")
    assert "`times` is 0, which must be at least 1" in refused("[[fault]]\nserver = 'b'\naction = 'refused'\ntimes = 0")
    assert "`requirements` says something twice" in refused(head=f"requirements = ['a', 'a']\n{HEAD}")
    assert "`title` is a text, which must be a text of a length" in refused(head=HEAD.replace('"A short one"', '""'))
