"""Fake servers behind real sockets. This package alone of the fakes' needs more than the standard library."""

from fake_servers.mounts.authority import TestAuthority
from fake_servers.mounts.mount import Mount

__all__ = ["Mount", "TestAuthority"]
