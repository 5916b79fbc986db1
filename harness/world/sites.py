"""What the switch points of all drivers have in common: the faults that can strike at them, and how hosts are named."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

ANY_ACTIONS = frozenset({"kill"})
HTTP_ACTIONS = ANY_ACTIONS | {
    "refused", "dns", "tls", "open-timeout", "reset-before", "reset-after", "answer", "answer-after", "slow"
}  # fmt: skip
NEVER_SENT = frozenset({"refused", "dns", "tls"})
STREAM_ACTIONS = ANY_ACTIONS | {"reset-after"}
READ_ACTIONS = ANY_ACTIONS | {"eacces"}
CHANGE_ACTIONS = ANY_ACTIONS | {"eacces", "enospc"}
WRITE_ACTIONS = CHANGE_ACTIONS | {"torn"}
FILE_ACTIONS = WRITE_ACTIONS
PROCESS_ACTIONS = ANY_ACTIONS | {"enoent", "eacces-exec"}
ACTIONS = HTTP_ACTIONS | FILE_ACTIONS | PROCESS_ACTIONS
ANSWERS = frozenset({"answer", "answer-after"})

LONGEST_LINE_BYTES = 64 * 1024 * 1024
"""A stream that has sent so much without a line break is broken: whoever reads it gets the end, and nothing more."""
LONGEST_URL_CHARACTERS = 65_536
SIGNAL_NUMBERS: Mapping[str, int] = {"SIGINT": 2, "SIGKILL": 9, "SIGTERM": 15}


@lru_cache(maxsize=1024)
def origin(url: str) -> str:
    """Scheme, host and port of a URL, the default port left out: `https://as.test`. Empty when it is no URL."""
    if len(url) > LONGEST_URL_CHARACTERS or url[:1].isspace() or any(each < " " or each == "\x7f" for each in url):
        return ""
    from urllib.parse import urlsplit  # whoever starts without a URL starts faster without it

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    default = {"https": 443, "http": 80}.get(parts.scheme)
    suffix = "" if port in (None, default) else f":{port}"
    host = (parts.hostname or "").lower()
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{suffix}"


def surviving(content: bytes, *actions: str) -> bytes:
    """What of a content reaches the disk where these faults struck: all, the first half (torn) or nothing (enospc)."""
    if "torn" in actions:
        return content[: len(content) // 2]
    return b"" if "enospc" in actions else content
