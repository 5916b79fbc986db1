"""A certificate authority that exists for one run, so that https can be tested with certificates that are checked."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme

CERTIFICATE_NAME = "ca.pem"


class TestAuthority:
    """Issues certificates for host names. `path` is the file of its own certificate, for clients to trust."""

    __test__ = False  # no test, whatever its name begins with

    def __init__(self, directory: Path) -> None:
        self._authority = trustme.CA()
        self.path = directory / CERTIFICATE_NAME
        self._authority.cert_pem.write_to_path(str(self.path))

    def server_context(self, host: str) -> ssl.SSLContext:
        """What a server needs that is to be taken for this host (a name or an address)."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(host).configure_cert(context)
        return context

    def client_context(self) -> ssl.SSLContext:
        """What a client needs that trusts this authority and no other."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.path)
        return context
