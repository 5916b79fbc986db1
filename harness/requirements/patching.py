"""Put a known-bad variant in place of its target wherever that is bound by name, and take it away again."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from harness.requirements.source_tree import IMPORT_FAULTS
from harness.requirements.variants import Variant

PATCHED_PACKAGES = ("harness", "fake_runtimes", "fake_servers", "scenarios")
# Variants call the originals that they import, by name or through the module.
NEVER_PATCHED = "scenarios.variants"
# What these remember does not depend on any rule: the table of operations, schemas.
CACHES_KEPT = ("harness.requirements.", "harness.vectors.")


class TargetMissingError(Exception):
    """A variant names a target that does not exist, or that no module of the project binds."""


class Binding(NamedTuple):
    """One name that holds the target: a module's global or a class's attribute."""

    owner: Any
    name: str


class ModuleView(NamedTuple):
    """A module that a variants file holds by name, and a view of it as it is without any variant."""

    holder: ModuleType
    name: str
    module: ModuleType
    view: SimpleNamespace


class Patch:
    """A variant in place between `apply` and `undo`."""

    def __init__(self, variant: Variant) -> None:
        owner, name = _find_owner(variant.target)
        self.original = vars(owner)[name]
        self.replacement = _same_kind(self.original, variant.replacement, owner, name)
        holders = [owner] if isinstance(owner, type) else project_modules()
        self.bindings = [
            Binding(holder, bound) for holder in holders for bound, value in _names(holder) if value is self.original
        ]
        self.module_views = _module_views(variant.replacement)
        self.loaded_before: frozenset[str] = frozenset()
        if not self.bindings:
            raise TargetMissingError(f"{variant.target} is bound in no module of {', '.join(PATCHED_PACKAGES)}")

    def apply(self) -> None:
        """Bind the replacement, and forget what functions with a cache remember of the original."""
        self.loaded_before = frozenset(sys.modules)
        for holder, name, _, view in self.module_views:
            setattr(holder, name, view)
        for owner, name in self.bindings:
            setattr(owner, name, self.replacement)
        clear_caches()

    def undo(self) -> None:
        """Bind the original again, also in modules that were imported meanwhile and took the replacement."""
        for holder, name, module, _ in self.module_views:
            setattr(holder, name, module)
        for owner, name in self.bindings:
            setattr(owner, name, self.original)
        for module in project_modules():
            for name, value in () if module.__name__ in self.loaded_before else _names(module):
                if value is self.replacement:
                    setattr(module, name, self.original)
        clear_caches()


def project_modules() -> list[ModuleType]:
    """All loaded modules of the project, save the variants themselves."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in PATCHED_PACKAGES
        and name != NEVER_PATCHED
        and not name.startswith(f"{NEVER_PATCHED}.")
        and isinstance(module, ModuleType)
    ]


def clear_caches() -> None:
    """Empty the `functools` caches of the project: what was computed under one variant must not reach another."""
    for module in project_modules():
        if not module.__name__.startswith(CACHES_KEPT):
            for cached in _cached_functions(module):
                cached.cache_clear()


@functools.cache
def _cached_functions(module: ModuleType) -> tuple[functools._lru_cache_wrapper[Any], ...]:
    """The module's functions and methods that remember; none is added once the module is loaded."""
    return tuple(value for value in _values_with_methods(module) if isinstance(value, functools._lru_cache_wrapper))


def _find_owner(target: str) -> tuple[Any, str]:
    """The module or class that holds the target by its plain name."""
    module_name, colon, qualified_name = target.partition(":")
    if not colon or not qualified_name:
        raise TargetMissingError(f'{target!r} is not of the form "module:function" or "module:Class.method"')
    try:
        owner: Any = importlib.import_module(module_name)
    except IMPORT_FAULTS as error:
        raise TargetMissingError(f"{target}: {type(error).__name__}: {error}") from error
    *path, name = qualified_name.split(".")
    for part in path:
        owner = vars(owner).get(part)
        if not isinstance(owner, type):
            raise TargetMissingError(f"{target}: {part} is no class there")
    value = vars(owner).get(name)
    if not (callable(value) or isinstance(value, (staticmethod, classmethod, property, functools.cached_property))):
        raise TargetMissingError(f"{target}: no function {name} there")
    return owner, name


def _module_views(replacement: Callable[..., Any]) -> list[ModuleView]:
    """Views that keep a variant which calls `module.rule(...)` from calling itself."""
    holder = sys.modules.get(replacement.__module__)
    if holder is None:
        return []
    ours = project_modules()
    return [
        ModuleView(holder, name, value, SimpleNamespace(**vars(value)))
        for name, value in _names(holder)
        if isinstance(value, ModuleType) and value in ours
    ]


def _same_kind(original: Any, replacement: Callable[..., Any], owner: Any, name: str) -> Any:
    """The replacement, wrapped as the original is (a property stays one)."""
    if isinstance(original, (staticmethod, classmethod, property)):
        return type(original)(replacement)
    if isinstance(original, functools.cached_property):
        cached = functools.cached_property(replacement)
        cached.__set_name__(owner, name)
        return cached
    return replacement


def _names(holder: Any) -> list[tuple[str, Any]]:
    return list(vars(holder).items())


def _values_with_methods(module: ModuleType) -> Iterator[Any]:
    for value in list(vars(module).values()):
        yield value
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from list(vars(value).values())
