"""Old bugs that whole scenarios show: what an incident looked like before its rule."""

from __future__ import annotations

from fake_runtimes.claude.startup import first_request_wait_seconds as claude_wait_rule
from harness.reference.catalog.startup_timeout import Accepted
from harness.requirements.variants import variant

BUDGETS = "harness.reference.prepare.budgets:"
HANG_HELD = ("startup-timeout-default-hang-held",)


@variant(BUDGETS + "codex_seconds", catches=("prepare-codex-default-stdio",))
def codex_is_left_to_its_own_budget(accepted_seconds, *, starts_command):
    """No default is written for Codex, whose own is 30 s."""
    return accepted_seconds


@variant("harness.reference.catalog.startup_timeout:accept", catches=("startup-timeout-longer-reaches-all",))
def declared_budgets_are_not_read(value):
    """One number for everybody: what an entry declares is not looked at."""
    return Accepted(None, None)


@variant(BUDGETS + "pi_seconds", catches=HANG_HELD)
def pi_is_left_to_its_own_budget(accepted_seconds, *, starts_command):
    """No default is written for Pi, whose own is 60 s."""
    return accepted_seconds


@variant("fake_runtimes.claude.startup:attempt_seconds", catches=HANG_HELD)
def claude_gives_up_when_it_asks(server, environment, profile):
    """What is not ready for the first model request has failed."""
    return claude_wait_rule({}, profile)
