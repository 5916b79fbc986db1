"""Known-bad variants of the one predicate behind the spawn gate."""

from __future__ import annotations

import re

from harness.reference.catalog.entry import oauth_applies
from harness.reference.oauth.capability import CREDENTIAL_WORD, has_static_credential, is_credential_header
from harness.reference.oauth.capability import is_credential_name as is_credential_name_rule
from harness.requirements.variants import variant

CAPABILITY = "harness.reference.oauth.capability"


@variant(f"{CAPABILITY}:oauth_capable", catches=("gate-capable-needs-catalog",))
def an_unknown_server_is_capable(entry):
    """Offers an authorization that leads nowhere."""
    return entry is None or (oauth_applies(entry.get("type")) and not has_static_credential(entry.get("headers")))


@variant("harness.reference.catalog.entry:oauth_applies", catches=("gate-capable-needs-remote",))
def every_transport_is_capable(transport):
    """Routes any 401 to an authorization, stdio servers included."""
    return True


@variant(
    f"{CAPABILITY}:has_static_credential", catches=("gate-capable-no-static-header", "gate-header-vendor-spellings")
)
def headers_are_ignored(headers):
    """Lets a wrong API key offer an Authorize button that can never help."""
    return False


@variant(
    f"{CAPABILITY}:is_credential_name",
    catches=("gate-header-words", "readiness-oauth-capability", "gate-header-vendor-spellings"),
)
def authorization_alone_counts(name):
    """Knows the header Authorization and no other."""
    return name.lower() == "authorization"


@variant(f"{CAPABILITY}:is_credential_name", catches=("gate-header-whole-parts",))
def words_count_inside_other_words(name):
    """Matches a part of a word, so X-Author hides the button."""
    return re.search(r"auth|api[-_]?key|token|secret|password|credential", name, re.IGNORECASE) is not None


@variant(
    f"{CAPABILITY}:is_credential_name", catches=("gate-header-key-only-in-api-key", "gate-header-bias-to-authorize")
)
def key_is_a_word(name):
    """Reads Idempotency-Key as a credential."""
    return is_credential_name_rule(name) or "key" in re.split("[-_]", name.lower())


@variant(f"{CAPABILITY}:is_credential_name", catches=("gate-header-case-insensitive",))
def lower_case_names_alone_count(name):
    """Compares without folding the case."""
    return re.search(CREDENTIAL_WORD.pattern, name) is not None


@variant(f"{CAPABILITY}:is_credential_name", catches=("gate-header-vendor-spellings",))
def known_vendors_are_listed(name):
    """Enumerates header names, so a new vendor's is missed."""
    return name.lower() in {"authorization", "x-api-key", "x-goog-api-key", "x-figma-token", "private-token"}


@variant(f"{CAPABILITY}:is_credential_header", catches=("gate-header-name-decides",))
def values_are_sniffed(name, value):
    """Decides by the shape of the value."""
    return isinstance(value, str) and value.startswith("Bearer ")


@variant(f"{CAPABILITY}:is_blank_value", catches=("gate-header-blank-value",))
def the_name_is_enough(value):
    """Counts a header without a value."""
    return False


@variant(f"{CAPABILITY}:has_static_credential", catches=("gate-header-any-of-several",))
def only_the_first_header_counts(headers):
    """Looks at one header."""
    return any(is_credential_header(name, value) for name, value in list((headers or {}).items())[:1])


@variant(
    "harness.reference.oauth.endpoints:acceptable_endpoint",
    catches=("https-predicate", "https-predicate-strict-whitespace"),
)
def a_prefix_is_enough(endpoint):
    """Accepts whatever starts like https."""
    return endpoint is not None and endpoint.strip().lower().startswith("https")


@variant("harness.reference.oauth.endpoints:acceptable_endpoint", catches=("https-no-loopback-exception",))
def loopback_may_be_cleartext(endpoint):
    """Allows http on loopback, as most OAuth clients do."""
    return endpoint is not None and re.match(r"https://|http://(localhost|127\.|\[::1\])", endpoint) is not None
