"""Old bugs that the scenario families look for."""

from __future__ import annotations

from harness.reference.npx.heal import removable as removable_rule
from harness.reference.prepare.pipeline import pin_npx_caches as pin_npx_caches_rule
from harness.requirements.variants import variant


@variant(
    "harness.reference.prepare.pipeline:pin_npx_caches",
    catches=("npx-pin-not-inherited", "npx-pin-two-sessions-disjoint"),
)
def codex_entries_are_not_pinned(draft, request):
    """Only Claude's entries name a cache; under Codex every session of the machine installs into the user's (#595)."""
    return draft if request.runtime == "codex" else pin_npx_caches_rule(draft, request)


@variant("harness.reference.npx.heal:removable", catches=("npx-heal-isolated-path",))
def heals_the_shared_root_only(tree, listing, base):
    """The heal knows one install root a clone; a broken tree in an isolated cache stays for the clone's life."""
    return "/isolated/" not in tree and removable_rule(tree, listing, base)
