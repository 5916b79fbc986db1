"""What scenario files say of sign-ins: tables, steps, expectations, their mistakes, and what each leads to in a run."""

from __future__ import annotations

import re

import pytest

from harness.errors import UserInputError
from harness.scenario.production import Report, play
from harness.scenario.reading import read_scenario
from harness.scenario.verdicts import Verdict
from scenarios.playing import HEAD, SESSION, short, told

GOOD = """
[authorization.as-b]
provider = "notion"

[server.b]
protected_by = "as-b"
tools = ["find"]

[[step]]
authorize = "b"
"""
CREDENTIAL = "[[credential]]\nserver = 'b'\nissued_by = 'as-b'\nexpires_in_seconds = 600\nheld_by = ['orchestrator']"

MISTAKES = [
    # what is added to a good file, the line that is named (of what was added), words of the message
    ("[authorization.x]\nprovider = 'notin'", 2, "no provider is called 'notin'. Did you mean notion?"),
    (
        "[authorization.x]\nset = { acess_seconds = 1 }",
        2,
        "a provider has no 'acess_seconds'. Did you mean access_seconds?",
    ),
    ("[authorization.x]\nset = { reuse = 'ignored' }", 1, "reuse must be one of"),
    ("[authorization.x]\nanswers = { token = ['maybe'] }", 2, "no answer is called 'maybe'. There are ok, "),
    ("[authorization.x]\nanswers = { tokens = ['ok'] }", 2, "no endpoint is called 'tokens'. Did you mean token?"),
    ("[authorization.x]\nalways = { token = { drops = 'perhaps' } }", 2, "perhaps"),
    ("[authorization.x]\nalways = { token = { omits = ['scope'] } }", 2, "There are refresh_token, expires_in."),
    ("[authorization.x]\nalways = { token = { omits = ['refreshtoken'] } }", 2, "Did you mean refresh_token?"),
    ("[authorization.x]\nalways = { metadata = { omits = ['refresh_token'] } }", 2, "an answer to metadata omits no"),
    ("[authorization.x]\nalways = { token = { omits = ['expires_in'], status = 200 } }", 2, "stands in for"),
    ("[authorization.x]\nalways = { token = { body = 'x' } }", 2, "has no effect without `status`"),
    ("[authorization.x]\nalways = { token = { processed = true } }", 2, "has no effect without `status`"),
    ("[authorization.x]\nset = { access_seconds = 1e12 }", 2, "more than ten years"),
    ("[authorization.x]\nisuer = 'https://x.test'", 2, "Did you mean issuer?"),
    ("[authorization.a]", 1, "a is a server's name already"),
    ("[registered.c]\nclient_id = 'x'", 1, "no server is called 'c'"),
    ("[registered.b]\nclient = 'x'", 2, "client"),
    ("[catalog.c]\ntype = 'http'\nurl = 'https://c.test'\n[server.c]\nprotected_by = 'as-c'", 5, "Did you mean as-b?"),
    ("[server.a]\nprotected_by = 'as-b'", 2, "nobody signs in to it, so `protected_by` has no effect"),
    ("[registered.a]\nclient_id = 'x'", 1, "a is a process: nobody signs in to it"),
    ("[[credential]]\nserver = 'a'\naccess_token = 't'", 2, "a is a process: nobody signs in to it"),
    (
        (
            "[catalog.c]\ntype = 'http'\nurl = 'https://c.test'\n[server.c]\nprotected_by = 'as-b'\n"
            "resource = { scope = ['x'] }"
        ),
        6,
        "says no 'scope' of itself. Did you mean scopes?",
    ),
    (
        (
            "[catalog.c]\ntype = 'http'\nurl = 'https://c.test'\n[server.c]\nprotected_by = 'as-b'\n"
            "resource = { scopes = 3 }"
        ),
        6,
        "scopes must be of the kind of",
    ),
    (
        (
            "[catalog.c]\ntype = 'http'\nurl = 'https://c.test'\n[server.c]\nprotected_by = 'as-b'\n"
            "resource = { challenge = 'nothing' }"
        ),
        6,
        "no challenge is called 'nothing'. There are metadata, plain, none.",
    ),
    (
        "[catalog.c]\ntype = 'http'\nurl = 'https://c.test'\n[server.c]\nresource = { scopes = ['x'] }",
        5,
        "[server.c] is not protected",
    ),
    (
        "[catalog.c]\ntype = 'http'\nurl = 'https://c'\n[server.c]\nprotected_by = 'as-b'\nrequires_bearer = ['t']",
        5,
        "both `protected_by` and `requires_bearer`",
    ),
    ("[[credential]]\nserver = 'b'", 1, "needs one of access_token and issued_by"),
    ("[[credential]]\nserver = 'b'\naccess_token = 't'\nissued_by = 'as-b'", 1, "needs one of access_token"),
    ("[[credential]]\nserver = 'b'\nissued_by = 'as-b'\nrefresh_token = 'r'", 4, "issues the refresh token too"),
    ("[[credential]]\nserver = 'b'\nissued_by = 'as-c'", 3, "no authorization server is called 'as-c'"),
    ("[[credential]]\nserver = 'b'\nissued_by = 'as-b'\nheld_by = ['nobody']", 4, "There are orchestrator, runtime"),
    ("[[step]]\nauthorize = 'c'", 2, "no server is called 'c'"),
    ("[[step]]\nauthorize = 'b'\nsession = 'T'", 3, "no session is called 'T'"),
    ("[[step]]\nauthorize = 'b'\nuser = 'refuses'", 3, "There are consents, walks-away"),
    ("[[step]]\nauthorize = 'b'\ntakes_seconds = -1", 3, "at least 0"),
    ("[[step]]\nauthorize = 'b'\nurl = 7", 3, "a text"),
    ("[[step]]\nauthorize = 'b'\nrepeat = true", 3, "Did you mean repeats?"),
    ("[[step]]\njob = 'refrsh'", 2, "refresh"),
    ("[[step]]\njob = 'refresh'\nseconds = -1", 3, "at least 0"),
    ("[[step]]\nprovider = 'as-c'\nset = { rotates = false }", 2, "Did you mean as-b?"),
    ("[[step]]\nprovider = 'as-b'", 1, "nothing changes for as-b"),
    ("[[step]]\nprovider = 'as-b'\nrevokes = 'c'", 3, "no server is called 'c'"),
    ("[[step]]\nstart = 'web'", 1, "'web' is the orchestrator's own"),
    ("[[step]]\nstart = 'cron'", 1, "'cron' is the orchestrator's own"),
    ("[[expect]]\ncredential = 'c'\nis = 'active'", 2, "no server is called 'c'"),
    ("[[expect]]\ncredential = 'b'", 1, "credential of b expects nothing"),
    ("[[expect]]\ncredential = 'b'\nis = 'good'", 3, "There are active, expired"),
    ("[[expect]]\ncredential = 'b'\ngeneration = 0", 3, "at least 1"),
    ("[[expect]]\ncredential = 'b'\none_shot = 'yes'", 3, "true or false"),
    ("[[expect]]\nreceived = 'a'\ntimes = 1", 2, "a is no remote server"),
    ("[[expect]]\nreceived = 'as-c'\ntimes = 1", 2, "no server is called 'as-c'"),
    ("[[expect]]\nreceived = 'as-b'\nmethod = 'initialize'", 3, "no request to as-b is called 'initialize'"),
    ("[[expect]]\nreceived = 'as-b'\nmethod = 'refresh'", 3, "Did you mean refresh_token?"),
    ("[[expect]]\nreceived = 'b'\nmethod = 'token'", 3, "There are initialize, notifications/initialized, ping"),
    ("[[expect]]\nreceived = 'b'\nmethod = 'post'", 3, "Did you mean POST?"),
    ("[[expect]]\nreceived = 'b'\nmethod = 'tools/lst'\nnever = true", 3, "Did you mean tools/list?"),
    ("[[expect]]\nevent = 'gate.judged'\nwhere = { verdict = 'useable' }", 3, "Did you mean usable?"),
    ("[[expect]]\nevent = 'oauth.probed'\nwhere = { determination = 'required' }", 3, "There are advertised_"),
    ("[[expect]]\nevent = 'step.provider'\nwhere = { authorization = 'as-c' }", 3, "Did you mean as-b?"),
    ("[[expect]]\nevent = 'attempt'\nwhere = { hole = 'answer-lots' }", 3, "Did you mean answer-lost?"),
    ("[[expect]]\nevent = 'web.answered'\nwhere = { step = 'initiated' }", 3, "Did you mean initiate?"),
    ("[[expect]]\nevent = 'credential.adopted'\nwhere = { runtime = 'codx' }", 3, "Did you mean codex?"),
    ("[[expect]]\nevent = 'mcp.received'\nwhere = { method = 'tools/call*x' }", 3, "no method is called"),
    ("[[expect]]\nevent = 'step.job'\nwhere = { job = 'refesh' }", 3, "Did you mean refresh?"),
    ("[[expect]]\nevent = 'gate.judged'\nwhere = { verdct = 'x' }", 3, "Did you mean verdict?"),
    ("[[expect]]\nevent = 'credential.stored'\nwho = 'S/claude'", 3, "It happens to a session"),
    ("[[expect]]\nevent = 'oauth.started'\nwho = 'web#2'", 3, "web has 1 run, so there is no web#2"),
    ("[[expect]]\nevent = 'credential.refreshed'\nwho = 'cron'", 3, "nobody can be called 'cron'"),
    ("[[expect]]\nevent = 'session.ended'\nwho = 'S#2'", 3, "session S has 1 run"),
    ("[[hold]]\nactor = 'cron'\nat = 'x'\nuntil = { event = 'spawn' }", 2, "nobody can be called 'cron'"),
]


@pytest.mark.parametrize(("added", "line", "words"), MISTAKES)
def test_a_mistake_about_a_sign_in_is_one_line_with_its_place(added, line, words):
    good = short(GOOD)
    with pytest.raises(UserInputError) as caught:
        read_scenario(f"{good}\n{added}", "my.toml")
    message = str(caught.value)
    assert "\n" not in message
    assert words in message, message
    assert caught.value.line == good.count("\n") + 1 + line, message


def test_a_scenario_without_any_session_is_told_who_may_be_named():
    text = f"{HEAD}{GOOD}\n[[expect]]\nevent = 'oauth.started'\nwho = 'Q'\n"
    with pytest.raises(UserInputError, match="nobody can be called 'Q'") as caught:
        read_scenario(text, "my.toml")
    assert "There are web" in str(caught.value)


# --- what a run comes to


def run(*parts: str, runtime: str = "claude", session: str = "", **options) -> Report:
    """Play it, with whatever is expected in `parts`."""
    return play(read_scenario(short(GOOD, *parts, session=session)), runtime, **options)


def seen(text: str, *parts: str, session: str = "") -> tuple[bool, str]:
    """Whether one expectation is met, and what was seen instead."""
    (judged,) = run(*parts, f"[[expect]]\n{text}", session=session).judged
    return judged.seen.met, judged.seen.instead


@pytest.mark.parametrize(
    ("expected", "before", "met", "instead"),
    [
        ("is = 'active'", "", True, ""),
        ("is = 'none'", "", False, "it is active"),
        ("is = 'active'\ngeneration = 1\nnewest = true\none_shot = false", "", True, "generation 1 of 1"),
        ("generation = 2", "", False, "it is generation 1 of 1"),
        ("newest = false", "", False, "it is generation 1 of 1"),
        ("one_shot = true", "", False, "it is not noted as one-shot"),
    ],
)
def test_a_credential_is_looked_at_in_the_orchestrators_row(expected, before, met, instead):
    was_met, told_instead = seen(f"credential = 'b'\n{expected}", before)
    assert was_met is met
    assert instead in told_instead or met


@pytest.mark.parametrize(
    ("state", "expires_in_seconds", "refreshes"),
    [("active", 60, True), ("expired", -60, True), ("needs-reauth", -60, False)],
)
def test_a_stored_credential_is_active_expired_or_beyond_renewal(state, expires_in_seconds, refreshes):
    stored = CREDENTIAL.replace("600", str(expires_in_seconds))
    dead = "" if refreshes else "[[step]]\nprovider = 'as-b'\nrevokes = 'b'\n[[step]]\njob = 'refresh'\n"
    text = f"{HEAD}{GOOD[: GOOD.index('[[step]]')]}{stored}\n{dead}[[step]]\nadvance = 1\n"
    report = play(read_scenario(f"{text}[[expect]]\ncredential = 'b'\nis = '{state}'\n"), "claude")
    assert report.verdict is Verdict.PASS, told(report)


def test_without_a_row_there_is_no_credential():
    assert seen("credential = 'b'\nis = 'none'", session=SESSION.replace("S", "T"))[0] is False
    text = f"{HEAD}{GOOD[: GOOD.index('[[step]]')]}[[step]]\nadvance = 1\n[[expect]]\ncredential = 'b'\n"
    assert play(read_scenario(f"{text}is = 'none'\n"), "claude").verdict is Verdict.PASS
    assert play(read_scenario(f"{text}generation = 1\n"), "claude").judged[0].seen.instead == "there is none"


def test_a_token_of_nobodys_has_no_generation():
    stored = "[[credential]]\nserver = 'b'\naccess_token = 'a-token-of-nobody'\nheld_by = ['orchestrator']\n"
    text = f"{HEAD}{stored}[[step]]\nadvance = 1\n[[expect]]\ncredential = 'b'\nnewest = true\n"
    (judged,) = play(read_scenario(text), "claude").judged
    assert judged.seen.instead == "its token is no authorization server's"


def answers(report: Report) -> list[tuple[str, int, str]]:
    """What the browser got: the step, the status, the page."""
    told_of = [event.details for event in report.events if event.name == "web.answered"]
    return [(each["step"], each["status"], each["page"]) for each in told_of]


def with_person(*keys: str, manual: bool = False, session: str = "") -> Report:
    """A person who does what the keys of the step say."""
    registered = """[registered.b]
client_id = "ours"
authorization_endpoint = "https://as-b.test/authorize"
token_endpoint = "https://as-b.test/token"
redirect_uri = "http://localhost:3118/callback"
"""
    good = GOOD.replace('provider = "notion"', 'provider = "notion"\nclients = [{ client_id = "ours" }]')
    parts = (registered if manual else "", good + "\n".join(keys), "[[expect]]\nevent = 'oauth.started'\ntimes = 1")
    return play(read_scenario(short(*parts, session=session)), "claude")


STARTED, CAME_BACK, AGAIN = ("initiate", 302, "redirect"), ("callback", 302, "redirect"), ("callback", 400, "error")
ASKED, PASTED, REFUSED = ("initiate", 200, "paste"), ("complete", 302, "redirect"), ("complete", 400, "paste")
GONE = ("complete", 400, "error")


@pytest.mark.parametrize(
    ("manual", "keys", "expected"),
    [
        (False, "", [STARTED, CAME_BACK]),
        (False, "repeats = true", [STARTED, CAME_BACK, AGAIN]),
        (False, "user = 'walks-away'", [STARTED]),
        (False, "pastes = 'code'", [STARTED, CAME_BACK]),
        (False, "takes_seconds = 3600", [STARTED, CAME_BACK]),
        (False, "takes_seconds = 86400", [STARTED, AGAIN]),
        (True, "", [ASKED, PASTED]),
        (True, "pastes = 'url'", [ASKED, PASTED]),
        (True, "pastes = 'code'", [ASKED, PASTED]),
        (True, "pastes = 'code'\nrepeats = true", [ASKED, PASTED, GONE]),
        (True, "pastes = 'a wrong one'", [ASKED, REFUSED]),
        (True, "pastes = 'https://x.test/?error=denied'\nrepeats = true", [ASKED, REFUSED, REFUSED]),
        (True, "user = 'walks-away'", [ASKED]),
    ],
)
def test_a_person_does_what_the_step_says(manual, keys, expected):
    assert answers(with_person(keys, manual=manual)) == expected


def test_a_person_who_takes_her_time_comes_back_so_much_later():
    report = with_person("takes_seconds = 3600")
    assert report.events[-1].at_seconds - report.started_seconds >= 3600


def test_a_step_that_does_not_wait_goes_on_at_once():
    text = short(GOOD + "wait = false\ntakes_seconds = 50", "[[step]]\nadvance = 90", session="")
    report = play(read_scenario(f"{text}\n[[expect]]\nevent = 'oauth.completed'\nbetween = [50, 51]"), "claude")
    assert report.verdict is Verdict.PASS, told(report)
    advanced = next(event for event in report.events if event.name == "step.advance")
    assert advanced.at_seconds == report.started_seconds


def test_a_resumed_session_goes_on_although_its_consent_was_not_waited_for():
    first = f"{SESSION}\n[[step]]\nauthorize = 'b'\nsession = 'S'\nwait = false\n[[step]]\nadvance = 5\n"
    good = GOOD[: GOOD.index("[[step]]")]
    expected = "[[expect]]\nevent = 'tool.call'\nwho = 'S#2/*'\nwhere = { server = 'a', ok = true }"
    report = play(read_scenario(short(good, session=f"{first}{expected}")), "claude")
    assert report.verdict is Verdict.PASS, told(report)


def test_the_address_that_a_form_names_is_submitted_and_ignored():
    report = run(
        "[[step]]\nauthorize = 'b'\nurl = 'https://x.test/mcp'\n[[expect]]\nevent = 'oauth.started'\ntimes = 1"
    )
    assert not any("x.test" in str(event.details.get("at")) for event in report.events)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("set = { consent = 'denied' }", [STARTED, ("callback", 400, "error")]),
        ("set = { absent = ['register'] }", [STARTED, ("consent", 400, "provider")]),
        ("answers = { token = ['429'] }", [STARTED, ("callback", 400, "error")]),
        ("always = { register = '500' }", [("initiate", 302, "redirect")]),
        ("always = { metadata = { status = 200, body = '{}' } }", [("initiate", 302, "redirect")]),
    ],
)
def test_a_provider_is_another_one_from_then_on(change, expected):
    parts = GOOD.replace("[[step]]", f"[[step]]\nprovider = 'as-b'\n{change}\n[[step]]", 1)
    text = f"{short(parts, session='')}\n[[expect]]\nevent = 'step.provider'\ntimes = 1"
    assert answers(play(read_scenario(text), "claude")) == expected


def test_what_a_provider_revokes_must_be_there():
    text = f"{HEAD}{GOOD}".replace("[[step]]", "[[step]]\nprovider = 'as-b'\nrevokes = 'b'\n[[step]]", 1)
    report = play(read_scenario(f"{text}\n[[expect]]\ncredential = 'b'\nis = 'active'"), "claude")
    assert (report.verdict, report.detail) == (Verdict.UNTESTABLE, "as-b has nothing of b to revoke")


@pytest.mark.parametrize(
    ("method", "times"),
    [
        ("metadata", 1),
        ("register", 1),
        ("authorize", 1),
        ("token", 1),
        ("authorization_code", 1),
        ("POST", 2),
        ("*", 4),
    ],
)
def test_an_authorization_server_received_what_was_asked_of_it(method, times):
    assert seen(f"received = 'as-b'\nmethod = '{method}'\ntimes = {times}")[0]
    assert not seen(f"received = 'as-b'\nmethod = '{method}'\ntimes = {times + 1}")[0]


ASTRAY = """
[registered.b]
client_id = "ours"
authorization_endpoint = "https://as-b.test/authorize"
token_endpoint = "https://as-b.test{path}/oauth/token"

[authorization.as-b]
issuer = "https://as-b.test/one"
provider = "well-behaved"
clients = [{{ client_id = "ours", redirect_uris = ["https://zimmer.example.com/mcp_oauth/callback"] }}]
set = {{ paths = {{ authorize = "/authorize" }} }}

[authorization.beside]
issuer = "https://as-b.test/one/two"

[server.b]
protected_by = "as-b"

[[step]]
authorize = "b"
"""


@pytest.mark.parametrize(
    ("path", "who"), [("", "as-b"), ("/one", "as-b"), ("/one/twofold", "as-b"), ("/one/two", "beside")]
)
def test_an_authorization_server_has_received_what_it_does_not_serve(path, who):
    """A code that is posted to a wrong place has left the house: whoever expects that nothing came must see it."""
    text = short(ASTRAY.format(path=path), session="").replace(
        "schema = 1", 'schema = 1\napp_host = "zimmer.example.com"'
    )
    expected = [(who, "POST", 1), (who, "authorization_code", 1), (who, "token", 0), ("beside", "*", who == "beside")]
    checks = "".join(
        f"\n[[expect]]\nreceived = '{name}'\nmethod = '{method}'\ntimes = {int(times)}"
        for name, method, times in expected
    )
    report = play(read_scenario(text + checks), "claude")
    assert report.verdict is Verdict.PASS, told(report)


def test_who_acts_without_a_session_is_held_struck_and_expected_by_name():
    text = short(
        GOOD + "wait = false",
        CREDENTIAL.replace("600", "-60"),
        "[[hold]]\nactor = 'web'\nat = 'POST https://as-b.test/register'\nuntil = { event = 'step.job' }",
        "[[fault]]\naction = 'reset-before'\nactor = 'web'\nat = 'POST https://as-b.test/register'",
        "[[step]]\nadvance = 20\n[[step]]\njob = 'refresh'",
        "[[expect]]\nevent = 'oauth.refused'\nwho = 'web'\ntimes = 1\nbefore = { event = 'credential.refreshed' }",
        "[[expect]]\nevent = 'credential.refreshed'\nwho = 'cron'\ntimes = 1\nbetween = [20, 21]",
        session="",
    )
    report = play(read_scenario(text), "claude")
    assert [each.actor for each in report.kept] == ["web", "web"]
    assert report.verdict is Verdict.PASS, told(report)


SIGN_IN = """
schema = 1
id = "x"
title = "x"
runtime = "claude"

[catalog.a]
type = "http"
url = "https://a.test/mcp"

[authorization.as]
{facts}

[server.a]
protected_by = "as"

[[step]]
provider = "as"
{change}

[[expect]]
exit = 0
"""


@pytest.mark.parametrize(
    ("facts", "change", "said"),
    [
        ("set = { access_seconds = 'x' }", "set = { rotates = false }", "access_seconds must be of the kind of"),
        ("set = { rotates = 'yes' }", "set = { rotates = false }", "rotates must be of the kind of"),
        ("set = { scopes = 3 }", "set = { rotates = false }", "scopes must be of the kind of"),
        ("", "set = { grace_seconds = 'x' }", "grace_seconds must be of the kind of"),
        ("", "set = { reuse = 'nothing' }", "reuse must be one of"),
        ("", "set = { gracious = true }", "has no 'gracious'"),
        ("", "always = { token = '500-htm' }", "no answer is called '500-htm'"),
        ("", "answers = { tokens = ['429'] }", "no endpoint is called 'tokens'"),
    ],
)
def test_what_no_provider_can_be_is_told_when_the_file_is_read(facts, change, said):
    with pytest.raises(UserInputError, match=re.escape(said)):
        read_scenario(SIGN_IN.format(facts=facts, change=change))
