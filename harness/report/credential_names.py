"""Which names of variables, headers, parameters and options hold a credential, told by their words."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_SECRET_WORDS = frozenset(
    {"auth", "authorization", "bearer", "cookie", "credential", "credentials", "jwt", "passphrase", "passwd"}
    | {"pass", "password", "pat", "pw", "pwd", "secret", "secrets", "sig", "signature", "token", "tokens"}
)
_SECRET_ENDINGS = ("accesskey", "apikey", "password", "privatekey", "secret", "secretkey", "token")
_KEY_OWNERS = frozenset(
    {
        "access",
        "account",
        "admin",
        "api",
        "app",
        "auth",
        "client",
        "deploy",
        "encryption",
        "license",
        "master",
    }
    | {"private", "secret", "service", "sign", "signing", "storage", "subscription", "user", "webhook"}
)
_TELLS_SOMETHING_ELSE = frozenset(
    {"algorithm", "audience", "cache", "count", "dir", "directory", "enabled", "endpoint", "env", "expires"}
    | {
        "expiration",
        "expiry",
        "file",
        "header",
        "headers",
        "hint",
        "host",
        "id",
        "ids",
        "issuer",
        "length",
        "limit",
    }
    | {
        "method",
        "methods",
        "mode",
        "name",
        "names",
        "path",
        "port",
        "prefix",
        "provider",
        "required",
        "scheme",
    }
    | {
        "scope",
        "scopes",
        "sec",
        "seconds",
        "size",
        "supported",
        "timeout",
        "ttl",
        "type",
        "types",
        "uri",
        "url",
    }
    | {"urls", "used", "var", "variable", "version"}
)
_FIRST_WORDS_OF_LIMITS = frozenset({"max", "min", "num"})


@lru_cache(maxsize=4096)
def is_credential_name(name: str) -> bool:
    """Whether a value under this name is a credential: `SLACK_BOT_TOKEN`, `X-API-Key`, `client_secret`.

    Names that only tell something about one are none: `token_endpoint`, `client_id`, `MAX_OUTPUT_TOKENS`.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _TELLS_SOMETHING_ELSE or words[0] in _FIRST_WORDS_OF_LIMITS:
        return False
    if _SECRET_WORDS.intersection(words) or "".join(words).endswith(_SECRET_ENDINGS):
        return True
    return words[-1] == "key" and (len(words) == 1 or bool(_KEY_OWNERS.intersection(words)) or name.isupper())
