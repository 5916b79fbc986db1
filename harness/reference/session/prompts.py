"""The prompts that the orchestrator sends of itself, and which of them say nothing new.

Source: seed 002 "Which prompt the resume delivers"; requirement resume-nudge-definition.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.reference.secrets.blank import is_blank


@dataclass(frozen=True, slots=True)
class FixedPrompts:
    """The two fixed texts of a deployment: after an interruption, and the beat to an idle session."""

    recovery: str = "You may have been interrupted. Look at where you were, and carry on."
    heartbeat: str = "Heartbeat: look whether anything waits for you, and go on with it."


def recovery_prompt(base: str, reason: str | None) -> str:
    """The recovery prompt, with what triggered it where that is known."""
    if reason is None or is_blank(reason):
        return base
    return f"{base}\n\n(What triggered this nudge: {reason}. No human sent it.)"


def is_nudge(prompt: str | None, prompts: FixedPrompts) -> bool:
    """A prompt that begins as one of the two fixed ones, whatever reason follows. One that quotes it later is none."""
    fixed = tuple(text for text in (prompts.recovery, prompts.heartbeat) if text)
    return prompt is not None and prompt.startswith(fixed)
