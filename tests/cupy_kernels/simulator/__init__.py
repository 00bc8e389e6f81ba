"""The simulator's parts, each against a plain computation."""
