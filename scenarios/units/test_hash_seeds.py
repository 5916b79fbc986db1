"""The same bytes in every process: what is written and shown depends on no order of a set."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness.preparation import RUNTIMES
from harness.reference.catalog.catalog import read_catalog
from harness.reference.readiness.probe import judge_all
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.surfaces.options import mcp_servers_answer, options
from harness.reference.surfaces.roster import mcp_section
from scenarios.preparing import prepared
from scenarios.shipped import ROOT, shipped_catalog

SEEDS = ("0", "1", "2", "77")
VALUES = {"ZIMMER_PROD_API_KEY": "k", "SLACK_BOT_TOKEN": "t", "STRAD_API_KEY": "s"}


def shown() -> str:
    """The statuses of the shipped servers without a secret, and what the agent and the REST list are told."""
    catalog = read_catalog(shipped_catalog())
    statuses = judge_all(catalog, SecretsLoader().resolution, lambda _: None)
    return json.dumps([repr(statuses), mcp_section(catalog, statuses), mcp_servers_answer(options(catalog, statuses))])


def written() -> str:
    """The three runtimes' configs of a session with every shipped server."""
    tree = shipped_catalog()
    return json.dumps([prepared(runtime, list(tree), tree, VALUES).text for runtime in RUNTIMES])


def in_fresh_processes(function: str) -> set[str]:
    """What a function of this module gives under each hash seed."""
    program = f"from scenarios.units.test_hash_seeds import {function} as told; print(told())"
    return {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.rstrip("\n")
        for seed in SEEDS
    }


@pytest.mark.requirement("readiness-deterministic")
def test_lists_and_statuses_are_the_same_under_every_hash_seed():
    assert in_fresh_processes("shown") == {shown()}


@pytest.mark.requirement("prepare-deterministic")
def test_written_files_are_the_same_under_every_hash_seed():
    assert in_fresh_processes("written") == {written()}
