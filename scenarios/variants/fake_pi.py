"""Known-bad variants of a running fake Pi."""

from __future__ import annotations

from fake_runtimes.pi.npx import Resolver
from fake_runtimes.pi.startup import request_seconds as pi_request_seconds
from fake_runtimes.pi.tokens import Entries
from harness.requirements.variants import variant

kept_rule = Entries.kept


@variant("fake_runtimes.pi.connect:budget_seconds", catches=("npx-pi-budget-covers-fallback",))
def the_resolver_eats_the_budget(server, profile, resolved_after_seconds):
    """Counts what the npx resolver took against the budget of the server."""
    return max(pi_request_seconds(server, profile) - resolved_after_seconds, 0.0)


@variant(
    "fake_runtimes.pi.startup:request_seconds",
    catches=("startup-timeout-default-hang-held", "prepare-fake-pi-own-default"),
)
def a_server_is_given_up_when_the_first_request_leaves(server, profile):
    """Takes the longest wait of the first model request for the budget of the servers."""
    return min(pi_request_seconds(server, profile), profile.first_request_wait_ms / 1000)


@variant("fake_runtimes.pi.npx:Resolver.installed", catches=("npx-pi-resolver-30s-cap",))
async def a_slow_install_is_waited_for(self: Resolver, server, package):
    """Waits for `npm exec` as long as it takes, and never falls back while it runs."""
    argv = ("npm", "exec", "--yes", "--package", package.spec, "--", "node", "-e", "1")
    npm = await self.world.processes.spawn(argv, env=self.environment, directory=self.home.session)
    await npm.wait()
    return await self.known(server, package)


@variant("fake_runtimes.pi.tokens:Entries.kept", catches=("reconcile-pi-process-cache-modelled",))
async def the_store_is_read_for_every_call(self, server):
    """Remembers nothing, so that a pair that is put into the store looks as if it took effect at once."""
    self._kept.pop(server.name, None)
    return await kept_rule(self, server)
