"""Sound pairs: two programs of one function, of which nothing may be said.

A file a topic. A pair is a function under ``@sound`` that returns both models,
with the same weights, and what they are called with.
"""
