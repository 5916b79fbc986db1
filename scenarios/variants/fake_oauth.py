"""Old or plausible bugs of the fake providers: a kinder provider would hide what a real one refuses."""

from __future__ import annotations

from collections.abc import Mapping

from fake_servers.oauth.clients import redirect_is_registered as redirect_is_registered_rule
from fake_servers.oauth.codes import untrusted as untrusted_rule
from fake_servers.oauth.tokens import Ledger
from harness.requirements.variants import variant

LEDGER = "fake_servers.oauth.tokens:Ledger"
SUCCEED = Ledger.succeed


@variant(f"{LEDGER}.succeed", catches=("reconcile-rotation-kills-prior-token",))
def a_spent_refresh_token_stays_good(self, parent, scope, now, expires_at, *, rotates):
    """Gives a new token, and never notes that the old one was used."""
    made = SUCCEED(self, parent, scope, now, expires_at, rotates=rotates)
    self._put(parent, parent)
    return made


@variant(f"{LEDGER}.revoke_family", catches=("reconcile-rotation-kills-prior-token",))
def reuse_ends_nothing(self, family, *, access_alone=False):
    """Refuses the spent token and lets its family live."""


@variant("fake_servers.oauth.clients:redirect_is_registered", catches=("authorize-slack-redirect-rejected",))
def any_port_of_loopback_will_do(client, redirect_uri, *, exact=False):
    """Leaves the port free for a client whose provider compares the whole text."""
    return redirect_is_registered_rule(client, redirect_uri)


@variant("fake_servers.oauth.codes:untrusted", catches=("authorize-slack-redirect-rejected",))
def a_redirect_on_the_same_scheme_will_do(client, fields, provider):
    """Takes every https redirect for one of the client's."""
    if client is not None and str(fields.get("redirect_uri")).startswith("https://"):
        return None
    return untrusted_rule(client, fields, provider)


@variant("fake_servers.oauth.codes:untrusted", catches=("authorize-slack-literal-rejected",))
def an_unknown_client_is_told_in_other_words(client, fields, provider):
    """Says of itself alone that something went wrong."""
    told = untrusted_rule(client, fields, provider)
    return "Something went wrong" if client is None and isinstance(fields, Mapping) else told


@variant("fake_servers.oauth.codes:is_verified", catches=("flow-public-exchange-relies-on-verifier",))
def any_verifier_will_do(challenge, verifier):
    """Gives tokens for a code that somebody else has asked for."""
    return True


@variant("fake_servers.oauth.codes:is_verified", catches=("flow-public-exchange-relies-on-verifier",))
def a_missing_verifier_will_do(challenge, verifier):
    """Looks at a verifier only where there is one."""
    return verifier is None or verifier == "v" * 43
