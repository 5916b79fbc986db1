"""Vectors of the area `resume`: what a completed authorization does to a session, and which prompts say nothing new."""

from __future__ import annotations

from typing import Any

from harness.reference.session import rows
from harness.reference.session.blocking import MARKER, REASON, REQUIRED, UNDELIVERED, required
from harness.reference.session.injection import NOTICE
from harness.reference.session.jobs import Job
from harness.reference.session.prompts import FixedPrompts, is_nudge, recovery_prompt
from harness.reference.session.resume import selected
from harness.reference.session.resume_decision import Facts, decide, noticed
from harness.vectors.registry import operation

NOW = 1_800_000_000.0
TOLD = ("undelivered_follow_up", "attachments_not_carried", "reconnect_notice")


@operation(
    "resume.authorize",
    requirements=(
        "gate-completion-resumes-session",
        "resume-only-when-all-authorized",
        "resume-waits-for-open-flow",
        "resume-not-blocked-states",
        "resume-owed-delivers-follow-up",
        "resume-nothing-owed-replays",
        "resume-no-session-id-runs-first-turn",
        "resume-undelivered-moved",
        "resume-attachments-first-turn-only",
        "resume-live-session-reconnect-notice",
    ),
)
def _authorize(given: dict[str, Any]) -> Any:
    values: rows.Values = row_of(given["session"])
    active, jobs, timeline, injected, result = (
        set(given["active"]),
        list[Job](),
        list[str](),
        list[str](),
        "not_blocked",
    )
    for named in given["authorized"] or [None]:
        decided = decide(
            values,
            Facts(
                authorized=lambda each: each["server_name"] in active,
                has_open_flow=given.get("flow_expires_in_s", 0) > 0,
                named=named,
                selected=selected(values),
                now=NOW,
            ),
        )
        result, values = decided.result, decided.values
        jobs += [decided.job] if decided.job is not None else []
        timeline += [line.kind for line in decided.lines if line.kind in TOLD]
        if decided.is_injected and not given.get("inject_raises", False):
            injected.append(named)
    metadata = rows.metadata(values)
    return {
        "result": result,
        "status": values["status"],
        "required": [each["server_name"] for each in required(values)],
        "job": job_of(jobs),
        "pending_follow_up_prompt": metadata.get(MARKER),
        "undelivered": metadata.get(UNDELIVERED),
        "reconnect": list(noticed(values)),
        "injected": injected,
        "timeline": timeline,
    }


def row_of(session: dict[str, Any]) -> dict[str, Any]:
    """The session's row as a vector tells it."""
    metadata: dict[str, Any] = {
        REASON: session.get("failure_reason"),
        REQUIRED: [{"server_name": name, "server_url": None} for name in session.get("required", [])],
    }
    if session.get("pending_follow_up_prompt") is not None:
        metadata[MARKER] = session["pending_follow_up_prompt"]
    if session.get("reconnect"):
        metadata[NOTICE] = {"servers": session["reconnect"]}
    return {
        "status": session["status"],
        "mcp_servers": session.get("mcp_servers", []),
        "session_id": session.get("session_id"),
        "transcript": session.get("transcript"),
        "attachments": session.get("attachments", []),
        "metadata": metadata,
    }


def job_of(jobs: list[Job]) -> dict[str, Any] | None:
    """The job that was enqueued: at most one, whatever was called how often."""
    if not jobs:
        return None
    (job,) = jobs
    if job.kind == "follow_up":
        return {"kind": job.kind, "prompt": job.prompt}
    return {"kind": job.kind, "images": list(job.images)}


@operation("resume.recovery_prompt", requirements=("resume-nudge-definition",))
def _recovery_prompt(given: dict[str, Any]) -> Any:
    return recovery_prompt(given["base"], given["reason"])


@operation("resume.nudge", requirements=("resume-nudge-definition",))
def _nudge(given: dict[str, Any]) -> Any:
    return is_nudge(given["prompt"], FixedPrompts(given["recovery"], given["heartbeat"]))
