"""The battery: simulated spawns of every entry, each with one fault, in which everybody else must come through."""
