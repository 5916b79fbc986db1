"""What a run of Codex was measured to do in one version and not in the other, beyond what the profiles hold."""

from __future__ import annotations

from typing import NamedTuple

from fake_runtimes.profile import CodexProfile, ProfileError

NOT_LOGGED_IN = "The {name} MCP server is not logged in. Run `codex mcp login {name}`."


class ExecFacts(NamedTuple):
    """`refusal` is what the model reads of a call that policy forbids, `reauthentication` what an expired
    credential without a way to renew it says, `path_prefix` the directory below the home that a child's PATH
    starts with, `metadata_requests` how often the resource's metadata is fetched before a stored token is used.
    `names_failed_servers`: the log, where it is turned up, tells each server that did not start by its name.
    `rollout_tells_calls`: the rollout has an event of its own for a call's end; else the output names its server.
    `configuration` is what `codex mcp` failed to load, `unknown_status` what it says of a credential that it cannot
    tell of. `renewal_needs_issuer`: an expired credential counts only where it names who issued it.
    """

    refusal: str
    reauthentication: str
    path_prefix: str
    metadata_requests: int
    names_failed_servers: bool
    rollout_tells_calls: bool
    configuration: str
    unknown_status: str
    renewal_needs_issuer: bool


MEASURED = {
    "0.146.0": ExecFacts(
        refusal="user cancelled MCP tool call",
        reauthentication=(
            "MCP client for `{name}` failed to start: MCP startup failed:"
            " OAuth tokens for server {name} cannot be refreshed; authorization required"
        ),
        path_prefix="tmp/arg0/codex-arg0",
        metadata_requests=2,
        names_failed_servers=False,
        rollout_tells_calls=True,
        configuration="configuration",
        unknown_status="unsupported",
        renewal_needs_issuer=False,
    ),
    "0.169.0": ExecFacts(
        refusal="MCP tool call requires approval, but approval policy is never",
        reauthentication="The {name} MCP server requires OAuth reauthentication. Run `codex mcp login {name}`.",
        path_prefix="tmp/arg0-linux/codex-arg0",
        metadata_requests=1,
        names_failed_servers=True,
        rollout_tells_calls=False,
        configuration="bootstrap configuration",
        unknown_status="unknown",
        renewal_needs_issuer=True,
    ),
}


def exec_facts(profile: CodexProfile) -> ExecFacts:
    """The facts of a profile's version. Raises ProfileError for a version whose runs were not measured."""
    if profile.version not in MEASURED:
        raise ProfileError(f"profile {profile.name}: no run of this version was measured")
    return MEASURED[profile.version]
