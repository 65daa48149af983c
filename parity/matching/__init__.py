"""Which step, value or parameter of one model corresponds to one of another."""
