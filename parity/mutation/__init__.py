"""Small edits of a port's source, each of which the check has to notice."""
