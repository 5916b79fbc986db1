"""The reports of the canary, one module a format: from a `harness.canary.result.Canary` to the whole text."""
