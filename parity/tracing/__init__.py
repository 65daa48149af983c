"""Tracing a model: the inputs and outputs of each of its parts."""
