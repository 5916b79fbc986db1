"""Which npm package specs name one version, and which float."""

from __future__ import annotations

import re

_EXACT_VERSION = re.compile(r"[v=]*\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_LOCAL = re.compile(r"\.{1,2}(?:[/\\]|$)|/|~[/\\]|file:|[A-Za-z]:[/\\]")
_TARBALL = re.compile(r"\.(?:tgz|tar\.gz|tar)$", re.IGNORECASE)
_GIT = re.compile(r"(?:git|git\+\w+|ssh)://|git@|(?:github|gitlab|bitbucket|gist):|[^@/:]+/[^/:]+$")
_GIT_HOST = re.compile(r"https?://(?:[^/@]+@)?(?:www\.)?(?:github\.com|gitlab\.com|bitbucket\.org)/[^/]+/[^/]+/?$")
_REGISTRY = re.compile(r"(?:@[^/@]+/)?[^/@]+(?:@(?P<selector>.*))?", re.DOTALL)


def floats(spec: str) -> bool:
    """Whether two installs of a spec may fetch different code: no version, a tag, a range, a git branch.

    A version that a placeholder stands for is not known, so it does not count.
    """
    spec = spec.strip()
    if _LOCAL.match(spec) or spec.startswith("${"):
        return False
    target, _, committish = spec.partition("#")
    if _GIT.match(target) or _GIT_HOST.match(target) or target.endswith(".git"):
        version = committish.removeprefix("semver:")
        return not (_COMMIT.fullmatch(version) or _EXACT_VERSION.fullmatch(version))
    if _TARBALL.search(target) or "://" in target.partition("@")[0]:
        return False
    found = _REGISTRY.fullmatch(spec)
    selector = found["selector"] if found else None
    if not selector:
        return True
    if ":" in selector or "/" in selector:
        return floats(selector.removeprefix("npm:"))
    return "${" not in selector and not _EXACT_VERSION.fullmatch(selector)
