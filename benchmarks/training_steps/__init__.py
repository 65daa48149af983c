"""Pairs of training runs: planted faults, and sound pairs beside them.

A file a topic. A pair is a function that returns two functions, each of which
makes one training; ``@fault`` says what the right answer is, and ``@sound``
that nothing may be said.
"""
