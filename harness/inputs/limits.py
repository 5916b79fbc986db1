"""How much input the harness takes. Each limit has its own answer, and a test at both sides."""

MAXIMUM_FILE_BYTES = 8 * 1024 * 1024
"""A catalog of 10,000 ordinary entries is about 4 MB."""

MAXIMUM_DEPTH = 64
"""Nesting of objects and lists in a JSON document; a catalog needs four."""

MAXIMUM_ENTRIES = 10_000
"""Servers in one catalog."""

MAXIMUM_NUMBER_CHARACTERS = 400
"""Digits of one number: more than any number a JavaScript program could read back."""
"""A longer integer would also pass Python's own limit for turning text into numbers."""
