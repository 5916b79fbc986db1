"""What the drivers for real processes share: how a process learns where it is, and who steers it."""
