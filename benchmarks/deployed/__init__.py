"""Caches, compiled and exported models: planted faults and sound ones."""
