"""The three runtimes' credential stores, as the orchestrator writes, reads and clears them."""
