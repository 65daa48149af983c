"""Which known fault a port of ours has, and the proof that each is found."""
