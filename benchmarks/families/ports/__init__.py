"""Short sound ports, which the bench edits; each is one file."""
