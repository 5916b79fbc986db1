"""`mcp-harness explain` of what reports name besides the rules of the gate: requirements, and claims of the canary."""

from __future__ import annotations

import pytest

from harness.canary.claims import all_probes
from harness.cli import main
from harness.cli.explain import explained
from harness.requirements.manifest import load_manifest

REQUIREMENTS = load_manifest().requirements
CLAIMS = {claim.id: claim for probe in all_probes() for claim in probe.claims}


def flat(text):
    """A text without its lines' ends."""
    return " ".join(text.split())


def test_every_id_that_a_report_of_the_canary_names_is_explained():
    for claim in CLAIMS.values():
        text = flat(explained(claim.id))
        assert flat(claim.says) in text
        for name in claim.relied_on:
            assert f"{name}: {flat(REQUIREMENTS[name].statement)[:200]}" in text


def test_every_requirement_is_explained_in_lines_that_fit():
    for requirement in REQUIREMENTS.values():
        text = explained(requirement.id)
        assert text.startswith(f"{requirement.id}  requirement of the area {requirement.area}, {requirement.level}\n")
        assert max(len(line) for line in text.splitlines() if " " in line.strip()[12:]) <= 100


def test_a_requirement_names_the_claims_and_rules_that_rest_on_it(capsys):
    assert main(["explain", "writers-codex-workaround-bugs", "codex.login.kept"]) == 0
    one, other = flat(capsys.readouterr().out).split(" ask it ")[0].split("codex.login.kept claim of the canary")
    assert "claims codex.refresh.issuer-expired, codex.login.kept, codex.login.renewed" in one
    assert "codex-0.146.0 holds: {" in other


@pytest.mark.parametrize(
    ("text", "near"),
    [("codex.login.kep", "codex.login.kept"), ("prepare-canary-budget", "prepare-canary-budgets"), ("MH2003", "MH203")],
)
def test_a_slip_gets_the_nearest_id_of_any_kind(capsys, text, near):
    assert main(["explain", text]) == 2
    error = capsys.readouterr().err
    assert f"there is no rule {text}, nor a requirement or claim of that name. Did you mean {near}?" in error


def test_ids_may_be_written_in_any_case(capsys):
    assert main(["explain", "mh203", "CODEX.LOGIN.KEPT", "Writers-Codex-Workaround-Bugs"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if "  " in line and line[0] != " "] == [
        "MH203",
        "codex.login.kept",
        "writers-codex-workaround-bugs",
    ]
