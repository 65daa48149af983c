"""The Transformer in Keras 3, on the backend that Keras has been told of."""

import importlib

#: What users call -> the file that has it. Keras is imported with the first.
FACE = {"Transformer": "transformer", "TransformerConfig": "public",
        "create": "public", "load": "public", "save": "public"}

__all__ = [  # noqa: F822
    "Transformer", "TransformerConfig", "create", "load", "save"]


def __getattr__(name):
    """A name of the face, taken from its file."""
    if name not in FACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{FACE[name]}"), name)
