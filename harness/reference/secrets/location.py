"""Where a human has to put a missing value (secrets-where-to-set). Never shows a value."""

from __future__ import annotations

import re
from hashlib import sha256

VALUE_SHOWN = "<the-secret-value>"

PARAMETER_ID_LIMIT = 63
PARAMETER_ID_KEPT = 54
PARAMETER_ID_DIGEST = 8


def where_to_set(variable: str, environment: str, *, store_configured: bool) -> str:
    """The store's path for a variable where a store is configured, else the credentials file and how to edit it."""
    if store_configured:
        path = store_path(variable, environment)
        return f"Set {variable} at {path} (parameter {parameter_id(path)}) to {VALUE_SHOWN}"
    return (
        f"Set {variable} in config/credentials/{environment}.yml.enc: run "
        f"bin/rails credentials:edit -e {environment} and add the row "
        f"name: {variable}, value: {VALUE_SHOWN} under mcp_secrets"
    )


def store_path(variable: str, environment: str) -> str:
    """The address of a variable in the Parameter Store."""
    return f"/zimmer/{environment}/mcp/static/{variable}"


def parameter_id(path: str) -> str:
    """The id of a path: lower case, other characters folded to `-`, a long one cut and given a digest."""
    folded = re.sub(r"[^a-z0-9]+", "-", path.removeprefix("/").lower())
    if not re.match(r"[a-z]", folded):
        folded = f"p-{folded}"
    if len(folded) <= PARAMETER_ID_LIMIT:
        return folded
    return f"{folded[:PARAMETER_ID_KEPT]}-{sha256(path.encode()).hexdigest()[:PARAMETER_ID_DIGEST]}"
