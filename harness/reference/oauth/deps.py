"""What a deployment gives to the OAuth endpoints."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.reference.catalog.catalog import Catalog
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.secrets.placeholders import Lookup


@dataclass(frozen=True, slots=True)
class OAuthDeps:
    """The catalog as it is now, the whole secrets chain, and the deployment's own settings."""

    catalog: Catalog
    lookup: Lookup = field(repr=False)
    settings: OAuthSettings
