"""Other people's model files: bytes to arrays under their own names.

A file is recognised by its first bytes, a folder by what lies in it. Arrays
are views of the mapped file where the format allows, so that a large one is
read when it is used, and copied once at most; what is written into a view stays
in memory, and the file as it was. Nothing in a file is executed.
What the names mean is told by ``transformer_contract.dialects``.
"""
