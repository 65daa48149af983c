"""Errors, files, memory and formats of arrays: what all packages stand on.

Nothing here knows a model. Standard library, NumPy and safetensors only.
"""
