"""Profiles: the version-dependent facts of a runtime, one TOML file a version, each field read by some rule.

The spelling on command lines is `claude@2.1.328`, `pi@0.84.1+2.32.1` (program, then adapter); the bare name
of a runtime means its pinned version.
"""

from __future__ import annotations

import tomllib
from functools import cache
from os import listdir  # noqa: TID251 - what a fake is told to be is read past the world
from typing import Any, NamedTuple

# Not pathlib or glob: they would be a tenth of the time that an executable has to start.
DIRECTORY = f"{__file__.rpartition('/')[0]}/profiles"
SUFFIX = ".toml"
PINNED = {"claude": "claude-2.1.268", "codex": "codex-0.146.0", "pi": "pi-0.84.1+2.32.1"}


class UnknownProfileError(ValueError):
    """No such runtime or version; the message lists the known ones."""


class ProfileError(ValueError):
    """A profile file with a missing, unknown or wrongly typed field: a fault of this package."""


class ClaudeProfile(NamedTuple):
    """Claude Code. Times are what the program was seen to wait, texts what it prints.

    `remembers_refused_call`: after a refused call it connects anew even where nothing can be renewed, and notes what
    that comes to. `unknown_refusal_is_final`: a code that OAuth does not know ends a connection; else it counts as a
    fault of the authorization server. `stamps_issuer`: the store tells whose client an entry has.
    `forgotten_has_expired`: an entry whose client was refused is left with an expiry of 0, else with none.
    """

    name: str
    runtime: str
    version: str
    websocket_entries: bool
    sdk_entry_text: str
    faults_name_types: bool
    json_fault_names_place: bool
    empty_file_is_absent: bool
    reserved_names: tuple[str, ...]
    default_timeout_ms: int
    first_request_wait_ms: int
    stdio_at_a_time: int
    remote_at_a_time: int
    stdio_probe_ms: int
    remote_probe_ms: int
    reconnect_after_ms: int
    log_wording: str
    signals_unconnected: bool
    init_names_source: bool
    wait_tool: str
    defers_tools: bool
    refused_call_text: str
    remembers_refused_call: bool
    retries_lost_renewal: bool
    unknown_refusal_is_final: bool
    stamps_issuer: bool
    forgotten_has_expired: bool
    child_variables: tuple[str, ...]


class CodexProfile(NamedTuple):
    """Codex CLI. `optional_grace_ms` 0 means that the first request waits each server's own budget.

    `path_prefix` is the directory below the home that a child's PATH starts with. `refusal_text` is what the model
    reads of a call that policy forbids, `configuration_name` what `codex mcp` failed to load, `lost_home_text` what it
    failed to do without its home, `unknown_status` what it says of a credential that it cannot tell of.
    `names_failed_servers`: the log, where it is turned up, tells each server that did not start by its name.
    `call_event` is the transcript's own entry for a call's end; `names_servers_of_calls` whether the call's output
    names its server. `entries_by_address`: a stored entry is the server's by name and url also where it is renewed and
    removed, whatever its key.
    """

    name: str
    runtime: str
    version: str
    server_name_pattern: str
    header_helper_key: bool
    default_startup_timeout_sec: float
    optional_grace_ms: int
    grace_key: bool
    timeout_repeats_cause: bool
    trusts_writable_runs: bool
    trust_flag: bool
    untrusted_warning: str
    child_environment: tuple[str, ...]
    path_prefix: str
    name_limit: int
    refusal_text: str
    configuration_name: str
    lost_home_text: str
    unknown_status: str
    transport_type: str
    no_message_text: str
    names_failed_servers: bool
    call_event: str
    names_servers_of_calls: bool
    renewal_lookups: int
    renewal_needs_issuer: bool
    renewal_names_resource: bool
    renews_refused: bool
    drops_refused_grant: bool
    reauthentication_text: str
    renewal_failure_text: str
    entries_by_address: bool
    ends_gently: bool


class PiProfile(NamedTuple):
    """Pi with its MCP adapter; `version` is the program's and the adapter's joined by `+`.

    `no_table_text` is what is said of arguments that are a text, `own_adapter_warning` what a program that brings an
    adapter of its own says of the one that it is told to load (`{adapter}`); empty for one that brings none.
    """

    name: str
    runtime: str
    version: str
    empty_file_is_absent: bool
    settings_must_be_object: bool
    default_request_timeout_ms: int
    first_request_wait_ms: int
    resolver_limit_ms: int
    namespace_whole_name_in_hex: bool
    namespace_limit: int
    direct_prefix_once: bool
    direct_duplicates_all_dropped: bool
    environment_opt_out: bool
    tool_error_shows_parameters: bool
    lost_server_is_forgotten: bool
    long_entries_in_parts: bool
    no_table_text: str
    own_adapter_warning: str


Profile = ClaudeProfile | CodexProfile | PiProfile
CHECKS = {"str": str, "bool": bool, "int": int, "float": float, "tuple[str, ...]": list}


@cache
def known_profiles() -> tuple[str, ...]:
    """The names of all profiles, which are the files that are there; older versions first."""
    names = [name.removesuffix(SUFFIX) for name in listdir(DIRECTORY) if name.endswith(SUFFIX)]  # noqa: PTH208
    return tuple(sorted(names, key=age))


def age(name: str) -> tuple[str, tuple[int, ...]]:
    """What sorts the names of profiles: by runtime, then by the numbers of the version."""
    runtime, _, version = name.partition("-")
    return runtime, tuple(int(part) for part in version.replace("+", ".").split(".") if part.isdecimal())


def parse_runtime(text: str) -> str:
    """The profile's name for `runtime@version`, for a bare runtime, or for a profile's own name."""
    runtime, at, version = text.partition("@")
    name = f"{runtime}-{version}" if at else PINNED.get(text, text)
    if name not in known_profiles():
        spellings = ", ".join(known.replace("-", "@", 1) for known in known_profiles())
        raise UnknownProfileError(f"unknown runtime {text!r}: known are {spellings}")
    return name


@cache
def load_profile(name: str) -> Profile:
    """The profile of that name. Raises UnknownProfileError, or ProfileError for a file that does not fit."""
    if name not in known_profiles():
        raise UnknownProfileError(f"unknown profile {name!r}: known are {', '.join(known_profiles())}")
    return read_profile(name, profile_text(name))


def profile_text(name: str) -> str:
    """The text of a known profile's file."""
    with open(f"{DIRECTORY}/{name}{SUFFIX}", encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def profile_at(path: str) -> Profile:
    """The profile of any file, whatever that is called. Raises OSError, or ProfileError for one that does not fit."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"profile {path}: {error}") from error
    return read_profile(f"{fields.get('runtime')}-{fields.get('version')}", text)


def read_profile(name: str, text: str) -> Profile:
    """A profile from its TOML text; `name` is the file's, which the text must agree with."""
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"profile {name}: {error}") from error
    runtime = fields.get("runtime")
    kinds: dict[Any, type[ClaudeProfile] | type[CodexProfile] | type[PiProfile]] = {
        "claude": ClaudeProfile,
        "codex": CodexProfile,
        "pi": PiProfile,
    }
    if not isinstance(runtime, str) or runtime not in kinds:
        raise ProfileError(f"profile {name}: runtime is {runtime!r}, not one of {', '.join(kinds)}")
    profile_kind = kinds[runtime]
    checked = checked_fields(name, fields, field_kinds(profile_kind))
    profile = profile_kind(name=name, **checked)
    if name != f"{profile.runtime}-{profile.version}":
        raise ProfileError(f"profile {name}: says it is {profile.runtime} {profile.version}")
    return profile


def field_kinds(profile_kind: type) -> dict[str, str]:
    """Field names and their declared types as text, without the name that the file gives."""
    declared = profile_kind.__annotations__.items()
    return {field: getattr(of, "__forward_arg__", str(of)) for field, of in declared if field != "name"}


def checked_fields(name: str, fields: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    """The fields, each there and of its type, none besides."""
    missing, unknown = sorted(kinds.keys() - fields.keys()), sorted(fields.keys() - kinds.keys())
    if missing or unknown:
        raise ProfileError(f"profile {name}: missing fields {missing}, unknown fields {unknown}")
    for field, value in fields.items():
        if type(value) is not CHECKS[kinds[field]]:
            raise ProfileError(f"profile {name}: {field} is {value!r}, expected {kinds[field]}")
    return {field: tuple(value) if isinstance(value, list) else value for field, value in fields.items()}
