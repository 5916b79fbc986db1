"""Vectors of the area `gate` about retiring a credential whose grant was rejected."""

from __future__ import annotations

from typing import Any

from harness.reference.credentials import table
from harness.reference.credentials.retire import retire
from harness.reference.credentials.row import Credential
from harness.reference.credentials.state import is_active
from harness.vectors.operations.reconcile import KEY, NOW, row_of, run
from harness.vectors.registry import operation
from harness.world import World


@operation("gate.retire", requirements=("gate-retire-drops-refresh-token", "gate-retire-expires-active-row"))
def _retire(given: dict[str, Any]) -> Any:
    async def program(world: World) -> tuple[bool, Credential | None]:
        if given["row"] is not None:
            seconds = given["row"]["expires_in_s"]
            expires_at = None if seconds is None else NOW + seconds
            row = row_of(KEY, refresh_token=given["row"]["refresh_token"], expires_at=expires_at)
            await table.insert_unchecked(world, row)
        return await retire(world, KEY, (), "server"), await table.find(world, KEY)

    was_there, row = run(program)
    return {"retired": was_there, "row": None if row is None else answer(row)}


def answer(row: Credential) -> dict[str, Any]:
    """The row as the answer shows it."""
    seconds = None if row.expires_at is None else row.expires_at - NOW
    shown = {"refresh_token": row.refresh_token, "active": is_active(seconds)}
    return shown if seconds is None else {**shown, "expires_in_s": round(seconds)}
