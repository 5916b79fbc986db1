"""Known-bad variants of placeholders, interpolation and the chain of providers."""

from __future__ import annotations

import re
from typing import Any

from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.interpolator import resolve_entry as resolve_entry_rule
from harness.reference.secrets.loader import Resolution, SecretsLoader, StoreUnavailableError
from harness.reference.secrets.placeholders import (
    PLACEHOLDER,
    SCANNED_TABLES,
    ForeignPlaceholder,
    MissingVariableError,
    Variables,
)
from harness.reference.secrets.placeholders import resolve_text as resolve_text_rule
from harness.reference.secrets.placeholders import variables as variables_rule
from harness.reference.secrets.providers import StoreSettings
from harness.requirements.variants import variant

ANY_CASE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
INTERPOLATOR = "harness.reference.secrets.interpolator"
PLACEHOLDERS = "harness.reference.secrets.placeholders"
LOADER = "harness.reference.secrets.loader"

resolution_rule = SecretsLoader.resolution


@variant(f"{INTERPOLATOR}:resolve_entry", catches=("secrets-catalog-has-placeholder",))
def the_catalog_is_resolved_in_place(entry, lookup):
    """Puts the values into the entry that it was given, so the catalog and its snapshot hold secrets."""
    resolved = resolve_entry_rule(entry, lookup)
    for member, value in resolved.items():
        entry[member] = value
    return entry


@variant(f"{INTERPOLATOR}:resolve_table", catches=("secrets-placeholders-env-headers", "secrets-codex-http-headers"))
def tables_stay_literal(table, lookup):
    """Leaves env and headers as they are, so a placeholder goes over the wire."""
    return dict(table)


@variant(f"{INTERPOLATOR}:resolve_entry", catches=("secrets-placeholders-args-url",))
def args_and_url_stay_literal(entry, lookup):
    """Resolves the tables alone."""
    resolved = resolve_entry_rule(entry, lookup)
    return {**resolved, **{member: entry[member] for member in ("args", "url") if member in entry}}


@variant(f"{INTERPOLATOR}:resolve_entry", catches=("secrets-placeholders-not-elsewhere",))
def every_text_is_resolved(entry, lookup):
    """Walks every text of the entry, keys included."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {walk(key): walk(member) for key, member in value.items()}
        return resolve_text_rule(value, lookup) if isinstance(value, str) else value

    return walk(resolve_entry_rule(entry, lookup))


@variant(f"{PLACEHOLDERS}:resolve_text", catches=("secrets-grammar", "secrets-non-placeholders-literal"))
def lower_case_names_count(text, lookup):
    """Takes lower-case names for placeholders too."""
    return ANY_CASE.sub(lambda match: lookup(match[1]) or match[2] or match[0], text)


@variant(f"{PLACEHOLDERS}:resolve_text", catches=("secrets-values-not-rescanned",))
def values_are_scanned_again(text, lookup):
    """Goes on until no placeholder is left (here: a few rounds)."""
    for _ in range(3):
        text = resolve_text_rule(text, lookup)
    return text


@variant(f"{PLACEHOLDERS}:resolve_text", catches=("secrets-nested-default-trap",))
def defaults_nest(text, lookup):
    """Resolves a placeholder inside a default."""
    inner = re.compile(r"\$\{([A-Z_][A-Z0-9_]*):-\$\{([A-Z_][A-Z0-9_]*)\}\}")
    return resolve_text_rule(inner.sub(lambda match: lookup(match[1]) or lookup(match[2]) or "", text), lookup)


@variant(f"{PLACEHOLDERS}:value_for", catches=("secrets-blank-is-missing",))
def an_empty_value_counts(name, default, lookup):
    """Takes a blank value, so the server starts and is refused on every call."""
    value = lookup(name)
    if value is not None:
        return value
    if default is None:
        raise MissingVariableError(name)
    return default


@variant("harness.reference.secrets.blank:is_blank", catches=("secrets-blank-is-missing",))
def white_space_is_a_value(text):
    """Takes a text of blanks for a value, so readiness calls the server ready and every call is refused."""
    return not text


@variant(f"{PLACEHOLDERS}:value_for", catches=("secrets-missing-error-type",))
def a_missing_variable_is_empty(name, default, lookup):
    """Puts an empty text where a value is missing."""
    value = lookup(name)
    return (default or "") if is_blank(value) else value


@variant(f"{INTERPOLATOR}:keeps_key", catches=("secrets-blank-result-dropped",))
def blank_keys_are_kept(written, resolved):
    """Keeps a key with a meaningless value."""
    return True


@variant(f"{INTERPOLATOR}:resolve_value", catches=("secrets-nonstrings-untouched",))
def everything_becomes_text(value, lookup):
    """Turns numbers and booleans into texts."""
    return resolve_text_rule(str(value), lookup)


@variant(f"{INTERPOLATOR}:resolve_servers", catches=("secrets-no-rescue-per-entry",))
def broken_entries_are_skipped(servers, lookup):
    """Starts the rest without the broken one."""
    resolved = {}
    for name, entry in servers.items():
        try:
            resolved[name] = resolve_entry_rule(entry, lookup)
        except MissingVariableError:
            continue
    return resolved


@variant(f"{PLACEHOLDERS}:variables", catches=("secrets-required-variable",))
def args_are_forgotten(entry):
    """Scans url, headers and env, in this order, and no args."""
    shuffled = {"env": {"url": entry.get("url")}, "headers": entry.get("headers")}
    first, rest = variables_rule(shuffled), variables_rule({"env": entry.get("env")})
    return Variables((*first.required, *rest.required), (*first.optional, *rest.optional))


@variant(f"{PLACEHOLDERS}:foreign_placeholders", catches=("secrets-foreign-placeholder-lint",))
def only_scanned_members_are_linted(entry):
    """Looks for spellings outside the grammar in env and headers, and nowhere else."""
    texts = [
        ((table, key), text)
        for table in SCANNED_TABLES
        for key, text in (entry.get(table) or {}).items()
        if isinstance(text, str)
    ]
    return tuple(
        ForeignPlaceholder(at, found[0])
        for at, text in texts
        for found in re.finditer(r"\$\{[^}]+\}", PLACEHOLDER.sub("", text))
    )


@variant(f"{LOADER}:SecretsLoader._providers", catches=("secrets-loader-order", "secrets-store-position"))
def the_environment_comes_first(self):
    """Asks the process environment before the managed secrets, and the store last."""
    behind = (("ENV", self._environment.get), ("Rails Credentials", self._credentials.get))
    return behind if self._store is None else (*behind, ("GSM", self._store.read))


@variant("harness.reference.secrets.providers:store_settings", catches=("secrets-store-position",))
def half_the_settings_configure_the_store(environment):
    """Takes the project alone for a configured store, so every lookup asks one that cannot answer."""
    return StoreSettings(bool(environment.get("ZIMMER_PARAMS_PROJECT_ID")), ())


@variant(f"{LOADER}:asks_vendor", catches=("secrets-vendor-scope",))
def the_vendor_is_asked_for_every_name(name):
    """Consults the vendor for any name."""
    return True


MINTED: dict[tuple[int, str], str | None] = {}


@variant(f"{LOADER}:SecretsLoader._minted", catches=("secrets-vendor-fresh",))
def minted_tokens_are_kept(self, name):
    """Keeps a vendor token for good."""
    if self._vendor is None or not self._vendor.has_row(name):
        return None
    return MINTED.setdefault((id(self), name), self._vendor.mint(name))


@variant(
    f"{LOADER}:SecretsLoader._held", catches=("secrets-store-outage-no-fallthrough", "readiness-store-not-missing")
)
def an_outage_falls_through(self, name):
    """Uses an older value, or none, while the store does not answer."""
    for badge, read in self._providers():
        try:
            value = read(name)
        except StoreUnavailableError:
            continue
        if value is not None:
            return badge, value
    return None


@variant(
    f"{LOADER}:SecretsLoader.resolution",
    catches=("secrets-resolution-never-value", "readiness-no-secret-values", "secrets-value-confined"),
)
def a_resolution_keeps_the_value(self, name):
    """Keeps the value in the answer for later."""
    found = resolution_rule(self, name)
    return found if found.state != "found" else Resolution("found", str(self.value(name)))


@variant("harness.reference.secrets.providers:is_complete", catches=("secrets-credentials-rows",))
def incomplete_rows_count(row):
    """Takes rows without a value."""
    return isinstance(row.get("name"), str) and isinstance(row.get("value"), str)


@variant("harness.reference.secrets.providers:is_stale", catches=("secrets-store-ttl",))
def the_store_is_read_on_each_lookup(age_seconds, *, known):
    """Reads the namespace again for each name."""
    return True


@variant("harness.reference.secrets.providers:ParameterStore._latest", catches=("secrets-store-warm-outage",))
def the_snapshot_is_dropped_on_an_error(self):
    """Forgets the last values when the store does not answer."""
    try:
        return dict(self._fetch())
    except StoreUnavailableError:
        return {}


@variant("harness.reference.secrets.location:where_to_set", catches=("secrets-where-to-set",))
def no_place_is_named(variable, environment, *, store_configured):
    """Says only that a secret is missing."""
    return f"Missing secret {variable}"


@variant("harness.reference.readiness.probe:required_variables", catches=("secrets-retargeted-key-not-required",))
def the_retargeted_key_is_required(entry, instance):
    """Judges the entry as the catalog wrote it on every deployment."""
    return variables_rule(entry.raw).required
