"""Vectors of the area `credential-key`."""

from __future__ import annotations

from typing import Any

from harness.reference.credentials.key import credential_key, pi_account, runtime_key
from harness.vectors.registry import operation


@operation(
    "credential-key.compute",
    requirements=(
        "credential-key-shape",
        "credential-key-preimage",
        "credential-key-only-three-members",
        "credential-key-streamable-http",
        "credential-key-other-types-verbatim",
        "credential-key-name-not-hashed",
        "credential-key-url-verbatim",
        "credential-key-headers-hashed",
        "credential-key-missing-headers",
        "credential-key-missing-members",
        "credential-key-non-ascii-raw",
        "credential-key-munge",
        "credential-key-html-escaping",
        "credential-key-integer-header-names",
        "credential-key-canary-two-configs",
        "credential-key-canary-fails-on-change",
        "credential-key-name-verbatim",
    ),
)
def _compute(given: dict[str, Any]) -> Any:
    return credential_key(given["server_name"], given["config"])


@operation(
    "credential-key.runtime",
    requirements=(
        "credential-key-placeholder-expansion",
        "writers-codex-key-forced",
        "writers-pi-key-is-server-name",
    ),
)
def _runtime(given: dict[str, Any]) -> Any:
    return runtime_key(given["runtime"], given["server_name"], given["config"], given.get("variables", {}))


@operation("credential-key.pi_account", requirements=("writers-pi-server-hash",))
def _pi_account(given: dict[str, Any]) -> Any:
    return pi_account(given["server_name"])
