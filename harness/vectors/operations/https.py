"""Vectors of the area `https`: which endpoints may be used, and where a post goes."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.oauth.transport import InsecureEndpointError, form_target
from harness.vectors.registry import operation


@operation(
    "https.acceptable",
    requirements=("https-predicate", "https-predicate-strict-whitespace", "https-no-loopback-exception"),
)
def _acceptable(given: dict[str, Any]) -> Any:
    return acceptable_endpoint(given["endpoint"])


@operation(
    "https.post_target",
    requirements=("https-post-form-raises", "https-userinfo-permitted", "https-userinfo-is-basic-auth"),
)
def _post_target(given: dict[str, Any]) -> Any:
    try:
        target = form_target(given["endpoint"])
    except InsecureEndpointError:
        return {"host": None, "target": None, "authorization": None, "error": "insecure_endpoint"}
    parts = urlsplit(target.url)
    asked = parts._replace(scheme="", netloc="").geturl()
    return {"host": parts.netloc, "target": asked, "authorization": target.authorization, "error": None}
