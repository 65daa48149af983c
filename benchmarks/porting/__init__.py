"""Faults that people make in ports, planted, and whether they are named."""
