"""Where Pi's adapter keeps a server's tokens: an account of the keyring, or a file that is handed in."""

from __future__ import annotations

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.text import utf8

KEYRING_SERVICE = "pi-mcp-adapter.oauth"


def account(server: LoadedServer) -> str:
    """`sha256-<hex>` of the server's name alone; url and headers play no part."""
    import hashlib  # loads a library, which most runs do not need

    return f"sha256-{hashlib.sha256(utf8(server.name)).hexdigest()}"


def handoff_path(server: LoadedServer) -> str:
    """The file below the adapter's OAuth directory in which a credential is handed in."""
    return f"{account(server)}/tokens.json"
