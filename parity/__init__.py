"""The harness: it runs the reference and the ports, and compares.

For models of other people: ``parity.trace(model, *inputs)`` looks into one,
``parity.compare(a, b)`` says where two part, ``parity.explain(comparison, a,
b)`` why. For their tests: ``parity.assert_parity(actual, expected)``.
"""

import importlib

#: What can be had from the package -> its module, imported when it is used.
PUBLIC = {"trace": "tracing.trace", "compare": "comparison.compare",
          "explain": "causes.explain",
          "assert_parity": "assertions.assert_parity"}


def __getattr__(name):
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"parity.{PUBLIC[name]}"), name)


def __dir__():
    return sorted(PUBLIC)
