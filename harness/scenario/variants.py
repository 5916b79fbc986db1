"""A known-bad variant in place for one run."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harness.errors import UserInputError
from harness.gate.nearness import did_you_mean
from harness.requirements.patching import Patch, TargetMissingError
from harness.requirements.source_tree import find_source_root, import_variants, require_source_root
from harness.requirements.variants import VARIANTS, Variant
from harness.scenario.hints import few

FOLDER = "scenarios/variants"
OLD_BUG, PROPOSAL = "old bug", "proposal"

_IN_FORCE: ContextVar[Variant | None] = ContextVar("variant", default=None)


def in_force() -> Variant | None:
    """The variant that is in place here, for whoever starts another process."""
    return _IN_FORCE.get()


def kind_of(name: str) -> str:
    """What a variant is: an old (or plausible) bug, or a proposal, which breaks no rule and closes a hole."""
    return PROPOSAL if name in written_names("proposal") else OLD_BUG


def known_variants() -> Collection[str]:
    """The names of all variants, proposals among them; none without a source tree."""
    return written_names("variant", "proposal")


@functools.cache
def written_names(*decorators: str) -> Collection[str]:
    """What has one of these decorators, read from the files and not imported; nothing without a source tree."""
    root = find_source_root()
    if root is None:
        return frozenset()
    decorated = re.compile(rf"^@(?:{'|'.join(decorators)})\(.*?^(?:async )?def (\w+)\(", re.MULTILINE | re.DOTALL)
    return frozenset(
        f"{path.stem}.{name}"
        for path in (root / FOLDER).glob("*.py")
        for name in decorated.findall(path.read_text(encoding="utf-8"))
    )


def find_variant(name: str) -> Variant:
    """The variant of that name; its file may be left out, dashes stand for underscores.

    Raises UserInputError, and CannotRunError where there is no source tree.
    """
    import_variants(require_source_root())
    wanted = name.replace("-", "_")
    if wanted in VARIANTS:
        return VARIANTS[wanted]
    found = [each for each in VARIANTS if each.partition(".")[2] == wanted]
    if len(found) == 1:
        return VARIANTS[found[0]]
    if found:
        raise UserInputError(f"--variant {name}: several are called so: {few(sorted(found))}", fix="Name its file.")
    near = did_you_mean(wanted, VARIANTS, 0.5)
    hint = f"Did you mean {near}?" if near else "mcp-harness dev variants --list has them."
    raise UserInputError(f"--variant {name}: there is none of that name", fix=hint)


@contextmanager
def in_place(variant: Variant | None) -> Iterator[None]:
    """The variant instead of the right rule, as long as the block runs. Raises UserInputError."""
    if variant is None:
        yield
        return
    try:
        patch = Patch(variant)
    except TargetMissingError as error:
        raise UserInputError(f"--variant {variant.name}: {error}", fix="Its target was renamed.") from None
    patch.apply()
    token = _IN_FORCE.set(variant)
    try:
        yield
    finally:
        _IN_FORCE.reset(token)
        patch.undo()
