"""One family or two a file, each with a function ``pairs``."""
