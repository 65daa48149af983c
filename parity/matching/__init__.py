"""Which step, value or parameter of one model is which of another."""
