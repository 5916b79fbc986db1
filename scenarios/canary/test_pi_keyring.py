"""The keyring of a trial in the kernel, as Pi's adapter uses it: seen by the programs of the trial and by nobody else.

They need a system that lets its users have namespaces and keyrings of their own, as most do outside of containers.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from fake_runtimes.profile import load_profile
from harness.canary.probes.pi.ground import account
from harness.canary.probes.pi.kernel import READING
from harness.canary.probes.pi.keyring import KERNEL, SERVICE, keyring
from harness.canary.subject import fake_of
from harness.canary.trial import Trial
from harness.world.outside.reaping import marked

pytestmark = pytest.mark.nightly
REAL = fake_of(load_profile("pi-0.84.1+2.32.1"))._replace(kind="real", adapter="/nowhere/a/b/c/index.ts")


def of_user(name):
    """What the user's own keyring has for a server, as JSON."""
    argv = [sys.executable, "-IS", str(KERNEL), READING, f"keyring:{account(name)}@{SERVICE}"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("has_read", [True, False])
def test_what_is_stored_in_a_trial_is_found_there_and_not_in_the_users_keyring(has_read, tmp_path):
    with Trial(REAL, tmp_path) as trial, keyring(trial) as store:
        assert store.read("one") is None
        store.write("one", "first", has_read=False)
        store.write("one", "second ü", has_read=has_read)
        assert store.read("one") == "second ü"
        assert of_user("one") == "null"


def test_a_keyring_ends_with_its_trial_and_the_next_one_is_empty(tmp_path):
    for _ in range(2):
        with Trial(REAL, tmp_path) as trial:
            with keyring(trial) as store:
                assert store.read("one") is None
                store.write("one", "text", has_read=False)
            assert marked(trial.mark) == set()
