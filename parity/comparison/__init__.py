"""Two models of anybody, step by step: where they diverge."""
