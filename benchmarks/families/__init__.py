"""Faults that people plant in ports of many model families, and sound ports.

A fault is an edit of one place of a source file: of a library's own modelling
file, or of a short port beside it. So the line of the fault is known.
"""
