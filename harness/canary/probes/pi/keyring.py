"""A keyring of a trial's own, in which Pi's adapter keeps what outlives a session, and which nobody else sees.

The real program runs in a user namespace that only its trial has (see `harness.world.outside.keyring`), and whoever
looks into its keyring does so in a process there, in a session of its own. The fake's keyring is a directory of files.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from harness.canary.probes.pi.ground import account
from harness.canary.probes.pi.kernel import CHANGING, READING, REPLACING
from harness.canary.trial import PI_OWN_STORE, Trial, TrialError
from harness.world.outside import keyring as inside
from harness.world.outside.keyring import NoKeyringError, RunKeyring

SERVICE = "pi-mcp-adapter.oauth"
KERNEL = Path(__file__).with_name("kernel.py")
ANSWER_SECONDS = 20.0
REFUSED = "Pi keeps credentials in the kernel's keyring, and a trial can have none of its own"


class Keyring(Protocol):
    """What is stored for servers, by their names."""

    def read(self, name: str) -> str | None:
        """What is stored for a server; None where that is nothing."""

    def write(self, name: str, text: str, *, has_read: bool) -> None:
        """What another program stores for a server; one that has not read makes a key anew."""


class Files:
    """The fake's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / SERVICE

    def read(self, name: str) -> str | None:
        """What is stored for a server; None where that is nothing."""
        place = self.folder / account(name)
        return place.read_text(encoding="utf-8") if place.exists() else None

    def write(self, name: str, text: str, *, has_read: bool) -> None:
        """What another program stores for a server; one that has not read makes a key anew."""
        (self.folder / account(name)).write_text(text, encoding="utf-8")
        if not has_read:
            (self.folder.with_name(f"{SERVICE}.keys") / account(name)).write_text(
                secrets.token_hex(8), encoding="utf-8"
            )


class Kernel:
    """The kernel's, in a namespace; `words` begin the command line of each program there."""

    def __init__(self, namespace: str) -> None:
        self.words = (sys.executable, "-IS", str(inside.__file__), namespace)

    def read(self, name: str) -> str | None:
        """What is stored for a server; None where that is nothing. Raises TrialError."""
        text: str | None = json.loads(self._asked(READING, name))
        return text

    def write(self, name: str, text: str, *, has_read: bool) -> None:
        """What another program stores for a server; one that has not read makes a key anew. Raises TrialError."""
        self._asked(CHANGING if has_read else REPLACING, name, text)

    def _asked(self, operation: str, name: str, text: str = "") -> str:
        words = (sys.executable, "-IS", str(KERNEL), operation, f"keyring:{account(name)}@{SERVICE}")
        done = subprocess.run(
            [*self.words, *words],
            input=text.encode(),
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise TrialError(f"the trial's keyring cannot be used: {said[-1] if said else 'no word'}")
        return done.stdout.decode()


@contextmanager
def keyring(trial: Trial) -> Iterator[Keyring]:
    """For as long as the context the trial's programs keep credentials in a keyring of its own.

    Raises TrialError where the system allows none.
    """
    trial.told |= dict.fromkeys(PI_OWN_STORE)
    if trial.subject.is_fake:
        yield Files(trial.folder / "keyring")
        return
    try:
        own = RunKeyring(trial.mark)
    except NoKeyringError as error:
        raise TrialError(f"{REFUSED}: {error}") from None
    with own:
        kernel = Kernel(own.namespace)
        trial.inside = kernel.words
        yield kernel
