"""The harness: it runs the reference and the ports, and compares.

For models of other people: ``parity.trace(model, *inputs)`` looks into one,
``parity.compare(a, b)`` says where two part, ``parity.explain(comparison, a,
b)`` why. For their tests: ``parity.assert_parity(actual, expected)``.
"""

import importlib
import importlib.util
import pathlib

#: A package of ours with a name that others may have as well.
CONTRACT = pathlib.Path(__file__).resolve().parent.parent / "contract"

_spec = importlib.util.find_spec("contract")
if _spec is None or CONTRACT not in [
        pathlib.Path(place).resolve()
        for place in _spec.submodule_search_locations or ()]:
    raise ImportError(
        "parity needs its own package 'contract', but Python finds "
        f"{_spec and _spec.origin}; rename that, uninstall it, or run in "
        "another folder.")

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
