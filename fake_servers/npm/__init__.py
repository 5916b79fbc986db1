"""npx as it was before installs were locked: slow, in steps, and open to races on one tree."""

from fake_servers.npm.npx import program
from fake_servers.npm.registry import Package

__all__ = ["Package", "program"]
