"""The probes, a package for each runtime."""
