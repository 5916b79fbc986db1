"""The shape of a `[mcp_servers.x]` table: the first fault in it ends the whole run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from fake_runtimes.loaded import EntryError
from fake_runtimes.profile import CodexProfile

APPROVAL_MODES = ("auto", "prompt", "writes", "approve")
ENV_VARS_SOURCES = ("local", "remote")
# Durations end at 2**64 seconds.
DURATION_LIMIT_SECONDS = 2.0**64
LOWEST_INTEGER, HIGHEST_INTEGER = -(2**63), 2**63 - 1

STDIO_REFUSES = (
    "url",
    "bearer_token_env_var",
    "bearer_token",
    "http_headers",
    "env_http_headers",
    "oauth",
    "oauth_resource",
)
HTTP_REFUSES = ("args", "env", "env_vars", "cwd", "bearer_token")
TEXTS = (
    "command",
    "cwd",
    "url",
    "bearer_token",
    "bearer_token_env_var",
    "oauth_resource",
    "experimental_environment",
    "name",
)
LISTS_OF_TEXT = ("args", "enabled_tools", "disabled_tools", "scopes")
RECORDS_OF_TEXT = ("env", "http_headers", "env_http_headers")
FLAGS = ("enabled", "required", "supports_parallel_tool_calls")
SECONDS = ("startup_timeout_sec", "tool_timeout_sec")
OAUTH_FIELDS = ("client_id", "client_secret", "callback_url")


class FieldError(EntryError):
    """A value of a wrong form; `place` is where it stands inside what is checked."""

    def __init__(self, text: str, place: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.place = place


def within(part: str, check: Callable[[Any], None], value: Any) -> None:
    """Check a part; its fault is told with the place."""
    try:
        check(value)
    except FieldError as error:
        raise FieldError(error.text, (part, *error.place)) from None


def check_entry(entry: Any, profile: CodexProfile) -> str:
    """The transport of the entry, stdio or http. Raises EntryError with the text that ends the run.

    Unknown keys are ignored, `type` and `headers` among them.
    """
    if not isinstance(entry, dict):
        wrong_type(entry, "a map")
    for field, value in entry.items():
        check_field(field, value, profile)
    if "command" in entry:
        refuse_fields(entry, stdio_refuses(profile), "stdio")
        return "stdio"
    if "url" in entry:
        refuse_fields(entry, HTTP_REFUSES, "streamable_http")
        return "http"
    raise EntryError("invalid transport")


def stdio_refuses(profile: CodexProfile) -> tuple[str, ...]:
    return (*STDIO_REFUSES, "http_headers_helper") if profile.header_helper_key else STDIO_REFUSES


def refuse_fields(entry: Mapping[str, Any], fields: tuple[str, ...], transport: str) -> None:
    for field in fields:
        if field in entry:
            raise EntryError(f"{field} is not supported for {transport}")


def check_field(field: str, value: Any, profile: CodexProfile) -> None:
    """One field against its type; a field that the version does not know is free."""
    check: Callable[[Any], None] | None = None
    if field in TEXTS or (field == "http_headers_helper" and profile.header_helper_key):
        check = check_text
    elif field in LISTS_OF_TEXT:
        check = check_list_of_text
    elif field in RECORDS_OF_TEXT:
        check = check_record_of_text
    elif field in FLAGS:
        check = check_flag
    elif field in SECONDS:
        check = check_seconds
    else:
        check = structured_check(field)
    if check is not None:
        within(field, check, value)


def structured_check(field: str) -> Callable[[Any], None] | None:
    """The check of a field with a shape of its own."""
    if field == "startup_timeout_ms":
        return check_milliseconds
    if field == "env_vars":
        return check_env_vars
    if field == "oauth":
        return check_oauth
    if field == "tools":
        return check_tools
    return check_approval_mode if field == "default_tools_approval_mode" else None


def check_text(value: Any) -> None:
    if not isinstance(value, str):
        wrong_type(value, "a string")


def check_list_of_text(value: Any) -> None:
    if not isinstance(value, list):
        wrong_type(value, "a sequence")
    for item in value:
        check_text(item)


def check_record_of_text(value: Any) -> None:
    if not isinstance(value, dict):
        wrong_type(value, "a map")
    for name, item in value.items():
        within(name, check_text, item)


def check_flag(value: Any) -> None:
    if not isinstance(value, bool):
        wrong_type(value, "a boolean")


def check_seconds(value: Any) -> None:
    """A number of seconds, whole or not; it must make a duration."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        wrong_type(value, "f64")
    if value < 0:
        raise EntryError("cannot convert float seconds to Duration: value is negative")
    if not value < DURATION_LIMIT_SECONDS:
        raise EntryError("cannot convert float seconds to Duration: value is either too big or NaN")


def check_milliseconds(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        wrong_type(value, "u64")
    if not 0 <= value <= HIGHEST_INTEGER:
        raise FieldError(f"invalid value: integer `{shown_integer(value)}`, expected u64")


def check_env_vars(value: Any) -> None:
    """Names, or tables of a name and where its value comes from."""
    if not isinstance(value, list):
        wrong_type(value, "a sequence")
    for item in value:
        if not isinstance(item, dict):
            check_text(item)
            continue
        if "name" not in item:
            raise EntryError("missing field `name`")
        check_text(item["name"])
        source = item.get("source", ENV_VARS_SOURCES[0])
        check_text(source)
        if source not in ENV_VARS_SOURCES:
            raise EntryError(f"unsupported env_vars source `{source}`; expected `local` or `remote`")


def check_oauth(value: Any) -> None:
    if not isinstance(value, dict):
        wrong_type(value, "a map")
    for field in OAUTH_FIELDS:
        if field in value:
            within(field, check_text, value[field])


def check_tools(value: Any) -> None:
    if not isinstance(value, dict):
        wrong_type(value, "a map")
    for name, tool in value.items():
        within(name, check_tool, tool)


def check_tool(value: Any) -> None:
    if not isinstance(value, dict):
        wrong_type(value, "a map")
    if "approval_mode" in value:
        within("approval_mode", check_approval_mode, value["approval_mode"])


def check_approval_mode(value: Any) -> None:
    check_variant(value, APPROVAL_MODES)


def check_variant(value: Any, variants: tuple[str, ...]) -> None:
    """One of a closed list of words."""
    check_text(value)
    if value not in variants:
        known = ", ".join(f"`{variant}`" for variant in variants)
        raise FieldError(f"unknown variant `{value}`, expected one of {known}")


def wrong_type(value: Any, expected: str) -> NoReturn:
    raise FieldError(f"invalid type: {described(value)}, expected {expected}")


def described(value: Any) -> str:
    """A value as the program's TOML reader names it."""
    if isinstance(value, bool):
        return f"boolean `{str(value).lower()}`"
    if isinstance(value, int):
        return f"integer `{shown_integer(value)}`"
    if isinstance(value, float):
        return f"floating point `{value}`"
    if isinstance(value, str):
        return f'string "{value}"'
    return "sequence" if isinstance(value, list) else "map"


def shown_integer(value: int) -> str:
    """The digits of an integer; one that no 64 bits hold is not spelled out."""
    return str(value) if LOWEST_INTEGER <= value <= HIGHEST_INTEGER else "out of range"
