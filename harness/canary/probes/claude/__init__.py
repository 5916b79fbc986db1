"""Probes of Claude Code."""
