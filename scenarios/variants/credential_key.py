"""Known-bad variants of the credential key: any one-step change of the algorithm."""

from __future__ import annotations

import json
from hashlib import sha256

from harness.reference.credentials.javascript import stringify
from harness.reference.credentials.key import credential_key as credential_key_rule
from harness.reference.credentials.key import hashed_members as hashed_members_rule
from harness.reference.credentials.key import key_hash as key_hash_rule
from harness.reference.credentials.key import preimage as preimage_rule
from harness.reference.credentials.known_wrong import html_escaped, munged, with_sorted_headers
from harness.requirements.variants import variant

KEY = "harness.reference.credentials.key"
CANARY = ("credential-key-canary-two-configs", "credential-key-canary-fails-on-change", "credential-key-preimage")


@variant(f"{KEY}:key_hash", catches=("credential-key-shape", *CANARY))
def the_full_digest_is_used(text):
    """Takes the whole digest, in upper case."""
    return sha256(text.encode()).hexdigest().upper()


@variant(f"{KEY}:preimage", catches=(*CANARY, "credential-key-agreement-property"))
def the_json_has_default_spacing(config):
    """Serialises with the blanks of a library's default."""
    return json.dumps(hashed_members_rule(config), ensure_ascii=False)


@variant(f"{KEY}:preimage", catches=(*CANARY, "credential-key-agreement-property"))
def members_are_sorted(config):
    """Sorts the keys."""
    return stringify(dict(sorted(hashed_members_rule(config).items())))


@variant("harness.reference.credentials.javascript:number", catches=("credential-key-preimage",))
def numbers_are_printed_as_python_prints_them(value):
    """Writes 60.0 and 1e+20 where JavaScript writes 60 and 100000000000000000000."""
    return str(value)


@variant(f"{KEY}:hashed_members", catches=("credential-key-only-three-members",))
def the_whole_entry_is_hashed(config):
    """Lets the other members of the entry into the hash."""
    return {**hashed_members_rule(config), **{name: config[name] for name in config if name not in {"type", "headers"}}}


@variant(
    f"{KEY}:hashed_type",
    catches=(
        "credential-key-streamable-http",
        "credential-key-agreement-property",
        "credential-key-canary-fails-on-change",
    ),
)
def the_type_is_hashed_as_written(written):
    """Does not know that streamable-http is http."""
    return written


@variant(f"{KEY}:hashed_type", catches=("credential-key-other-types-verbatim",))
def all_types_are_normalised(written):
    """Maps every remote type to http, whatever its case."""
    return "http" if str(written).lower() in {"http", "sse", "streamable-http"} else written


@variant(f"{KEY}:credential_key", catches=("credential-key-name-not-hashed", *CANARY))
def the_name_is_hashed(server_name, config):
    """Includes the name in the hashed object."""
    if not isinstance(config, dict):
        return server_name
    return f"{server_name}|{key_hash_rule(stringify({'name': server_name, **hashed_members_rule(config)}))}"


@variant(f"{KEY}:hashed_members", catches=("credential-key-url-verbatim",))
def the_url_is_normalised(config):
    """Drops a trailing slash."""
    members = hashed_members_rule(config)
    return {**members, "url": members["url"].rstrip("/") if members["url"] else None}


@variant(
    f"{KEY}:hashed_members",
    catches=(
        "credential-key-headers-hashed",
        "credential-key-agreement-property",
        "credential-key-canary-fails-on-change",
        "credential-key-unique-per-row",
    ),
)
def headers_are_dropped(config):
    """Hashes an empty header table for every server."""
    return {**hashed_members_rule(config), "headers": {}}


@variant(
    f"{KEY}:preimage",
    catches=("credential-key-headers-hashed", "credential-key-agreement-property"),
)
def headers_are_sorted(config):
    """Sorts the headers, so that two orders give one key."""
    return stringify(with_sorted_headers(hashed_members_rule(config)))


@variant(f"{KEY}:hashed_members", catches=("credential-key-missing-headers",))
def missing_headers_are_null(config):
    """Hashes null for an entry without headers."""
    return {**hashed_members_rule(config), "headers": config.get("headers")}


@variant(f"{KEY}:hashed_members", catches=("credential-key-missing-members",))
def missing_members_are_empty_texts(config):
    """Hashes an empty text for a missing type or url."""
    members = hashed_members_rule(config)
    return {**members, "type": members["type"] or "", "url": members["url"] or ""}


@variant(f"{KEY}:preimage", catches=("credential-key-non-ascii-raw",))
def non_ascii_is_escaped(config):
    """Escapes everything beyond ASCII."""
    return json.dumps(hashed_members_rule(config), separators=(",", ":"))


@variant(
    f"{KEY}:preimage",
    catches=("credential-key-munge", "credential-key-agreement-property", "credential-key-miss-is-silent"),
)
def values_are_munged(config):
    """Takes the blank out of `: ` and `, ` inside values too."""
    return munged(preimage_rule(config))


@variant(f"{KEY}:preimage", catches=("credential-key-html-escaping", "credential-key-agreement-property"))
def ampersands_are_escaped(config):
    """Escapes & < > as Rails does."""
    return html_escaped(preimage_rule(config))


@variant("harness.reference.credentials.javascript:member_order", catches=("credential-key-integer-header-names",))
def file_order_always(members):
    """Keeps the order of the file for integer-like names too."""
    return list(members)


@variant(f"{KEY}:claude_config", catches=("credential-key-placeholder-expansion", "credential-key-agreement-property"))
def the_catalog_text_is_hashed(config, variables):
    """Leaves placeholders in the hashed text, so every lookup with one misses."""
    return dict(config)


@variant("harness.reference.credentials.lookup:verdict", catches=("credential-key-miss-is-silent",))
def a_mismatch_is_a_missing_credential(looked_up, keys, same_name):
    """Reports a wrong key as no credential."""
    return "found" if looked_up in keys else "no_credential"


@variant(f"{KEY}:preimage", catches=("credential-key-determinism",))
def members_come_from_a_set(config):
    """Iterates over a set, so the order changes with the hash seed of the process."""
    members = hashed_members_rule(config)
    return stringify({**members, "headers": {name: members["headers"][name] for name in set(members["headers"])}})


@variant(f"{KEY}:split_key", catches=("credential-key-name-verbatim",))
def a_key_is_split_at_the_first_bar(key):
    """Cuts a name that holds a bar."""
    name, _, digits = key.partition("|")
    return name, digits


@variant(f"{KEY}:codex_config", catches=("writers-codex-key-forced",))
def codex_hashes_the_headers(config, variables):
    """Uses Claude's config for Codex."""
    return dict(config)


@variant(f"{KEY}:runtime_key", catches=("writers-pi-key-is-server-name",))
def pi_gets_a_hashed_key(runtime, server_name, config, variables):
    """Files a Pi credential under a key with a hash."""
    return credential_key_rule(server_name, config)


@variant(f"{KEY}:pi_account", catches=("writers-pi-server-hash",))
def the_account_is_cut(server_name):
    """Truncates the digest as the key does."""
    return f"sha256-{key_hash_rule(server_name)}"


@variant("harness.reference.credentials.state:can_refresh", catches=("https-can-refresh-false-for-cleartext",))
def any_endpoint_will_do(refresh_token, token_endpoint):
    """Tests the presence of both fields only."""
    return bool(refresh_token and refresh_token.strip() and token_endpoint)
