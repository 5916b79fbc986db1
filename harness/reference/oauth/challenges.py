"""The challenges of a WWW-Authenticate value, as HTTP (RFC 9110) reads them: several in one value, quotes respected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z\-]+"
_PIECE = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.?)*+(?:"|\Z))+', re.DOTALL)
"""What stands between two commas that are in no quoted text. A quote that is never closed reaches to the end."""
_SCHEME = re.compile(rf"({_TOKEN})(?:[ \t]++|\Z)(?!=)")
_PARAMETER = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*+)"|[^ \t"]*)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Challenge(NamedTuple):
    """A scheme as written, and those of its parameters whose values are quoted, by lower-case name."""

    scheme: str
    quoted: Mapping[str, str]


def challenges(header: str | None) -> tuple[Challenge, ...]:
    """The challenges in their order; parameters before the first scheme are one of the scheme "". Never raises."""
    found: list[Challenge] = []
    for piece in pieces(header or ""):
        scheme = _SCHEME.match(piece)
        if scheme is not None:
            found.append(Challenge(scheme[1], {}))
            piece = piece[scheme.end() :]
        found[-1:] = [with_parameters(found[-1] if found else Challenge("", {}), piece)]
    return tuple(found)


def pieces(header: str) -> Iterator[str]:
    """The comma-separated pieces, blanks around them left out."""
    for match in _PIECE.finditer(header):
        piece = match[0].strip(" \t")
        if piece:
            yield piece


def with_parameters(challenge: Challenge, piece: str) -> Challenge:
    """A challenge with the quoted parameters that a piece holds. Of one repeated the first counts.

    A piece has one, but servers are known to leave out the comma.
    """
    quoted = dict(challenge.quoted)
    for parameter in _PARAMETER.finditer(piece):
        if parameter[2] is not None:
            quoted.setdefault(parameter[1].lower(), _ESCAPED.sub(r"\1", parameter[2]))
    return Challenge(challenge.scheme, quoted)
