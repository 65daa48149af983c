"""Compiled and exported models, beside the model that they were made of."""
