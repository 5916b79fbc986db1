"""How a preparation fails: typed errors, and what AIR's stderr means for the session.

    PreparationError
    ├── MalformedConfigError        a local config file cannot be read; it is never overwritten
    ├── UnresolvedVariablesError    AIR found placeholders that survived
    └── AirFailedError              any other refusal of AIR's

`MissingVariableError` and `StoreUnavailableError` of the secrets package come through as they are.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from harness.reference.secrets.loader import StoreUnavailableError
from harness.reference.secrets.placeholders import MissingVariableError

UNRESOLVED_LINE = re.compile(
    r"Unresolved variables? in [^\n]*: (?P<listed>\$\{[^}\n]+\}(?:, \$\{[^}\n]+\})*)\.(?=\s|$)"
)
LISTED_NAME = re.compile(r"\$\{([^}\n]+)\}")
ROOT_NOT_FOUND = re.compile(r'Root "[^"\n]*" not found')
TRANSIENT = re.compile(
    r"ETIMEDOUT|ECONNRESET|ECONNREFUSED|EAI_AGAIN|ENOTFOUND|Could not resolve host|timed out"
    r"|Unexpected token|Unexpected end of JSON|is not valid JSON"
)
"""Network and git timeouts, and a document that was cut off on its way."""

RETRY_DELAYS_SECONDS = (5, 10, 20)

Reason = Literal["air_secret_unresolvable", "air_root_unresolvable", "air_prepare_failed", "secret_store_unavailable"]


class PreparationError(Exception):
    """Base of what ends a preparation before any agent runs."""


class MalformedConfigError(PreparationError):
    """A local config file cannot be read. `file` is relative to the clone (prepare-malformed-local-file)."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}; repair or remove the file, it was left as it is")
        self.file, self.problem = file, problem


class UnresolvedVariablesError(PreparationError):
    """AIR refused because placeholders survived; `variables` are their names as AIR listed them."""

    def __init__(self, variables: tuple[str, ...], stderr: str) -> None:
        super().__init__(stderr)
        self.variables, self.stderr = variables, stderr


class AirFailedError(PreparationError):
    """AIR exited non-zero for another reason."""

    def __init__(self, stderr: str) -> None:
        super().__init__(stderr)
        self.stderr = stderr


class Failure(NamedTuple):
    """What the session records, and whether the same preparation may be tried again.

    `transient`: retried after RETRY_DELAYS_SECONDS. `refreshes_catalog`: one catalog update, then one retry.
    """

    failure_reason: Reason
    unresolved_variables: tuple[str, ...] = ()
    transient: bool = False
    refreshes_catalog: bool = False

    def metadata(self) -> dict[str, object]:
        """The failure as the session's metadata holds it."""
        recorded: dict[str, object] = {"failure_reason": self.failure_reason}
        return recorded | (
            {"unresolved_variables": list(self.unresolved_variables)} if self.unresolved_variables else {}
        )


def classify_stderr(stderr: str) -> Failure:
    """What a non-zero exit of `air prepare` means (secrets-failure-recorded, prepare-transient-retries)."""
    unresolved = unresolved_variables(stderr)
    if unresolved:
        return Failure("air_secret_unresolvable", unresolved)
    if ROOT_NOT_FOUND.search(stderr):
        return Failure("air_root_unresolvable", refreshes_catalog=True)
    return Failure("air_prepare_failed", transient=TRANSIENT.search(stderr) is not None)


def unresolved_variables(stderr: str) -> tuple[str, ...]:
    """The names in AIR's one line about surviving placeholders, of any spelling; () where there is no such
    line.
    """
    line = UNRESOLVED_LINE.search(stderr)
    return tuple(LISTED_NAME.findall(line["listed"])) if line else ()


def classify_error(error: Exception) -> Failure:
    """The failure behind an error of this package or of the secrets chain.

    A store that cannot be read is worth another try and says nothing about a name
    (secrets-store-outage-at-spawn).
    """
    if isinstance(error, StoreUnavailableError):
        return Failure("secret_store_unavailable", transient=True)
    if isinstance(error, MissingVariableError):
        return Failure("air_secret_unresolvable", (error.name,))
    if isinstance(error, UnresolvedVariablesError | AirFailedError):
        return classify_stderr(error.stderr)
    return Failure("air_prepare_failed")


def attempts(failure: Failure) -> int:
    """How often a preparation that keeps failing like this is started."""
    return 1 + len(RETRY_DELAYS_SECONDS) if failure.transient else 1


def air_error(stderr: str) -> PreparationError:
    """The typed error for a non-zero exit of `air prepare`."""
    unresolved = unresolved_variables(stderr)
    return UnresolvedVariablesError(unresolved, stderr) if unresolved else AirFailedError(stderr)
