"""Activations that other programs wrote, read as a Trace."""
