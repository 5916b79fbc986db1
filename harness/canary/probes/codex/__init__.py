"""What is asked of Codex, an area a module."""
