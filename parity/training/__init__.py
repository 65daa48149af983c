"""Two training runs of anybody, step by step: where and why they diverge."""
