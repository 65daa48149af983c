"""How fast the implementations are, beside each other and beside a peer."""
