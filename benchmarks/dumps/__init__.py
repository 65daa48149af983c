"""Activations of other programs, and what models are given: faults and sound
pairs.

A file a topic. A fault is a function under ``@fault``, a sound pair one under
``@same``, and what has no cause that could be told one under ``@unknown``.
"""
