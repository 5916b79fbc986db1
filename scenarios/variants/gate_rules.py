"""Old and plausible bugs of the gate's rules that look at the file and the entries themselves."""

from __future__ import annotations

from harness.gate.rules.declarations import reads_as_unavailable as reads_as_unavailable_rule
from harness.gate.rules.document import repeated_keys as repeated_keys_rule
from harness.reference.catalog.schema import SCHEMA_URL
from harness.reference.credentials.known_wrong import known_wrong_keys
from harness.reference.secrets.placeholders import foreign_placeholders
from harness.requirements.variants import variant

LOCAL_COPY = "https://raw.githubusercontent.com/pulsemcp/air/main/schemas/mcp.schema.json"


@variant("harness.gate.rules.document:is_published", catches=("catalog-schema-url",))
def the_id_of_the_local_copy_is_the_authority(value):
    """Follows the `$id` of the local copy."""
    return value == LOCAL_COPY


@variant("harness.gate.rules.document:is_published", catches=("catalog-schema-url",))
def any_address_with_the_files_name_will_do(value):
    """Looks at the last part of the address alone."""
    return isinstance(value, str) and value.rpartition("/")[2] == SCHEMA_URL.rpartition("/")[2]


@variant("harness.gate.rules.document:repeated_keys", catches=("catalog-duplicate-json-keys",))
def repeated_names_pass_silently(document):
    """Judges the tree alone, which shows no repetition."""
    return {}


@variant("harness.gate.rules.document:repeated_keys", catches=("catalog-duplicate-json-keys",))
def the_first_one_wins(document):
    """Tells the occurrence that counts as the dropped one."""
    return {pointer: members[::-1] for pointer, members in repeated_keys_rule(document).items()}


@variant("harness.gate.rules.document:is_swallowed", catches=("catalog-name-js-proto-lint",))
def every_name_is_kept(name):
    """Thinks of the catalog as a Python dictionary."""
    return False


@variant("harness.gate.rules.document:is_wrapper", catches=("catalog-schema-wrapper-misread",))
def a_wrapper_is_one_more_server(name, raw):
    """Leaves the wrapper to the rules on entries, which only see that a type is missing."""
    return False


@variant("harness.gate.rules.schema:is_told_elsewhere", catches=("catalog-schema-wrapper-misread",))
def one_fault_is_told_by_every_rule_that_sees_it(tree, pointer):
    """Adds the schema's own finding to that of the wrapper."""
    return False


@variant("harness.gate.rules.declarations:is_no_reason", catches=("unavailable-non-string-finding",))
def true_is_a_declaration(value):
    """Takes `true` for unavailable without a reason, so there is nothing to tell."""
    return value is not None and not isinstance(value, str | bool)


@variant("harness.gate.rules.declarations:is_no_reason", catches=("unavailable-non-string-finding",))
def an_empty_text_is_told_as_well(value):
    """Tells the empty text and null, which declare nothing on purpose."""
    return not isinstance(value, str) or not value.strip()


@variant("harness.gate.rules.declarations:reads_as_unavailable", catches=("unavailable-description-lint",))
def the_words_alone_count(text):
    """Looks for the words wherever they stand."""
    return reads_as_unavailable_rule(text) or any(word in text.lower() for word in ("unusable", "broken", "deprecated"))


@variant("harness.gate.rules.declarations:reads_as_unavailable", catches=("unavailable-description-lint",))
def a_description_is_never_read(text):
    """Leaves prose alone."""
    return False


@variant("harness.gate.rules.placeholders:unseen_placeholders", catches=("secrets-foreign-placeholder-lint",))
def a_command_is_never_looked_at(view):
    """Looks where readiness looks: env, headers, args and url."""
    scanned = ("env", "headers", "args", "url")
    return (found for found in foreign_placeholders(view.fields) if found.at[0] in scanned)


@variant("harness.gate.rules.placeholders:unseen_placeholders", catches=("secrets-foreign-placeholder-lint",))
def readiness_sees_every_form(view):
    """Believes that what AIR sees, readiness sees."""
    return iter(())


@variant("harness.gate.rules.keys:wrong_ways", catches=("credential-key-runtime-mode",))
def a_miss_stays_silent(view):
    """Lists no entry."""
    return ()


@variant("harness.gate.rules.keys:wrong_ways", catches=("credential-key-runtime-mode",))
def every_remote_entry_is_told(view):
    """Tells entries for which no credential is ever stored."""
    return tuple(known_wrong_keys(view.name, view.fields))


@variant("harness.gate.rules.keys:wrong_ways", catches=("credential-key-runtime-mode",))
def only_text_replacement_goes_wrong(view):
    """Knows the way that the documents tell of and no other."""
    ways = known_wrong_keys(view.name, view.fields) if view.oauth_capable else {}
    return tuple(way for way in ways if way == "munged")
