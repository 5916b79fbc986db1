"""Vector operations of the npx area."""

from __future__ import annotations

from typing import Any

from harness.reference.npx import containment, guard, heal, isolation, layout, paths, specs
from harness.vectors.registry import operation

OCTAL = 8


@operation("npx.specs", requirements=("npx-spec-parse",))
def answer_specs(given: dict[str, Any]) -> list[str]:
    return list(specs.package_specs(given["args"]))


@operation("npx.hash", requirements=("npx-key-by-spec-only", "npx-key-includes-version-text"))
def answer_hash(given: dict[str, Any]) -> str:
    return specs.install_hash(given["specs"])


@operation("npx.collide", requirements=("npx-collide-detects", "npx-key-includes-version-text"))
def answer_collide(given: dict[str, Any]) -> list[str]:
    return list(isolation.colliding(given["servers"]))


@operation(
    "npx.cache_dir",
    requirements=(
        "npx-pin-scope-exact",
        "npx-pin-operator-value-kept",
        "npx-pin-without-args",
        "npx-layout-isolated-root",
        "npx-isolate-each",
        "npx-isolate-operator-value-counts",
    ),
)
def answer_cache_dir(given: dict[str, Any]) -> dict[str, str]:
    return isolation.cache_directories(given["clone"], given["servers"])


@operation("npx.dir_name", requirements=("npx-layout-name-sanitize",))
def answer_dir_name(given: dict[str, Any]) -> str:
    return layout.directory_name(given["name"])


@operation("npx.heal_detect", requirements=("npx-heal-detects", "npx-heal-not-for-permissions"))
def answer_heal_detect(given: dict[str, Any]) -> bool:
    return heal.is_corruption(given["error"])


@operation("npx.containment", requirements=("npx-layout-containment",))
def answer_containment(given: dict[str, Any]) -> bool:
    return containment.is_contained(given["path"], containment.clones_base(given["home"]))


@operation("npx.guard_mode", requirements=("npx-guard-mode-mirror", "npx-guard-repairs-0644"))
def answer_guard_mode(given: dict[str, Any]) -> dict[str, Any]:
    mode = int(given["mode"], OCTAL)
    repaired = guard.repaired_mode(mode)
    shown = mode & 0o7777 if repaired is None else repaired
    return {"mode": f"{shown:04o}", "repaired": repaired is not None}


@operation(
    "npx.guard_sweep",
    requirements=(
        "npx-guard-repairs-0644",
        "npx-guard-all-roots",
        "npx-guard-root-outside-not-walked",
        "npx-guard-shim-outside-refused",
        "npx-guard-shim-kinds",
    ),
)
def answer_guard_sweep(given: dict[str, Any]) -> dict[str, list[str]]:
    clone = given["clone"]
    moved = given.get("moved_roots", {})
    links = {paths.normalise(paths.join(clone, root)): target for root, target in moved.items()}
    planned = guard.plan(clone, guard.Tree(tuple(_shim(shim) for shim in given["shims"]), links))
    failing = {shim["target"] for shim in given["shims"] if shim.get("chmod") == "error"}

    def chmod(target: str, _mode: int) -> None:
        if target in failing:
            raise PermissionError(target)

    return {"repaired": list(guard.carry_out(planned.repairs, chmod)), "refused": list(planned.refusals)}


def _shim(shim: dict[str, Any]) -> guard.Shim:
    return guard.Shim(shim["link"], shim["target"], shim["kind"], _octal(shim.get("mode")))


def _octal(mode: str | None) -> int | None:
    return None if mode is None else int(mode, OCTAL)
