"""The rules, one module a subject. Every module here is loaded; adding a rule means adding a function."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def load_rules() -> None:
    """Import every module of this package, which registers its rules."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
