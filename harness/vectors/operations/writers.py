"""Vectors of the area `writers`: what each writer puts into its runtime's store, and what it reads there."""

from __future__ import annotations

import math
from typing import Any

from harness.reference.credentials.writers import claude, codex, pi, pi_store
from harness.reference.credentials.writers.protocol import RuntimePair, StagedCredential
from harness.reference.credentials.writers.staging import MILLISECONDS, is_writable
from harness.reference.credentials.writers.store_file import document_of, parse
from harness.vectors.registry import operation

NOW = 1_800_000_000.0
LATE = math.inf
"""When no entry of the runtime's can be fresher any more."""


def credential(given: dict[str, Any]) -> StagedCredential:
    """A credential as a vector writes it."""
    scope = given["scope"]
    return StagedCredential(
        credential_key=given["credential_key"],
        server_name=given["server_name"],
        server_url=given["server_url"],
        client_id=given["client_id"],
        access_token=given["access_token"] or "",
        refresh_token=given["refresh_token"],
        expires_at_ms=given["expires_at_ms"],
        scope=codex.scope_text(scope) if isinstance(scope, list) else scope,
        issuer=given.get("issuer"),
        redirect_uris=tuple(given.get("redirect_uris") or ()),
    )


def credentials(given: dict[str, Any]) -> list[StagedCredential]:
    """Those of them that any runtime gets."""
    return [one for one in map(credential, given["credentials"]) if is_writable(one)]


@operation(
    "writers.claude",
    requirements=(
        "writers-claude-entry",
        "writers-claude-path",
        "writers-claude-keeps-other-blocks",
        "writers-no-credential-not-written",
        "store-other-blocks-kept",
    ),
)
def _claude(given: dict[str, Any]) -> Any:
    wanted, before = credentials(given), document_of(given["existing"])
    if not wanted:
        return {"file": parse(given["existing"])}
    return {"file": claude.merged(before, wanted, LATE)}


@operation(
    "writers.claude_merge", requirements=("writers-claude-merge-fresher", "reconcile-merge-protects-valid-entry")
)
def _claude_merge(given: dict[str, Any]) -> Any:
    disk, ours = (at(given[name]) for name in ("disk_expires_in_s", "zimmer_expires_in_s"))
    return "disk" if claude.fresher_on_disk(disk, ours, NOW * MILLISECONDS) else "zimmer"


def at(expires_in_s: int | None) -> float | None:
    """The time in milliseconds."""
    return None if expires_in_s is None else (NOW + expires_in_s) * MILLISECONDS


@operation("writers.claude_read", requirements=("writers-claude-emptied-entry", "writers-missing-store-not-error"))
def _claude_read(given: dict[str, Any]) -> Any:
    found = claude.pairs(document_of(given["file_text"]))
    return {key: told(pair) for key, pair in found.items()}


def told(pair: RuntimePair) -> dict[str, Any]:
    """A pair as a vector writes it."""
    expires_at = pair.expires_at
    return {
        "access_token": pair.access_token,
        "refresh_token": pair.refresh_token,
        "expires_at_ms": None if expires_at is None else round(expires_at * MILLISECONDS),
    }


@operation("writers.claude_delete", requirements=("writers-delete-returns-removed", "writers-missing-store-not-error"))
def _claude_delete(given: dict[str, Any]) -> Any:
    removed = claude.without(document_of(given["file_text"]), given["keys"])
    unreadable = parse(given["file_text"]) is None
    return {"removed": list(removed.keys), "file": None if unreadable else removed.document}


@operation(
    "writers.codex",
    requirements=(
        "writers-codex-file-schema",
        "writers-codex-issuer-field",
        "writers-codex-invalid-entry-kills-file",
        "writers-codex-one-entry-per-server",
        "writers-codex-overwrites-unconditionally",
    ),
)
def _codex(given: dict[str, Any]) -> Any:
    wanted = [one for one in credentials(given) if codex.is_readable_to_codex(one)]
    if not wanted:
        return {"file": parse(given["existing"])}
    return {"file": codex.rewritten(document_of(given["existing"]), wanted)}


@operation("writers.codex_keychain", requirements=("writers-codex-keychain-schema", "writers-codex-two-schemas"))
def _codex_keychain(given: dict[str, Any]) -> Any:
    return codex.keychain_item(credential(given["credential"]))._asdict()


@operation("writers.codex_scopes", requirements=("writers-codex-scope-forms",))
def _codex_scopes(given: dict[str, Any]) -> Any:
    return {"array": codex.scope_list(given["scope"]), "string": codex.scope_text(given["scope"])}


@operation(
    "writers.pi",
    requirements=("writers-pi-path", "writers-pi-server-hash", "writers-pi-entry", "writers-pi-nothing-synthesized"),
)
def _pi(given: dict[str, Any]) -> Any:
    path, entry = pi.staged(credential(given["credential"])) or (None, None)
    return {"path": path, "entry": entry}


@operation("writers.pi_clear", requirements=("writers-pi-chunked-remove", "writers-pi-store-unreachable-stages"))
def _pi_clear(given: dict[str, Any]) -> Any:
    text = (given["stored"] or {}).get("text")
    return {"removed": sorted(pi_store.accounts_to_remove("", text)), "staged": True}
