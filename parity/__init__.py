"""The harness: it runs the reference and the ports, and compares.

For models of other people: ``parity.diff(a, b, *inputs)`` says where two
differ and why, and ``parity.exact(model, *inputs)`` runs one with nothing
shorter than float64 inside. Step by step: ``parity.trace(model, *inputs)``
looks into one, ``parity.compare(a, b)`` says where they diverge, and
``parity.explain(comparison, a, b)`` why. ``parity.invariance(model, *inputs)``
asks one again in other batches, and with its cache. For their tests:
``parity.assert_parity(actual, expected)``.
"""

import importlib

#: What can be had from the package -> its module, imported when it is used.
PUBLIC = {"trace": "tracing.trace", "compare": "comparison.compare",
          "explain": "causes.explain", "diff": "causes.diff",
          "exact": "causes.diff", "Training": "training.form",
          "diff_training": "training.diff_training",
          "invariance": "invariants.asking",
          "nats": "assertions.nats",
          "assert_parity": "assertions.assert_parity"}

__all__ = list(PUBLIC)  # so that help(parity) lists them

#: What the package is called where it is installed.
NAME = "transformer-parity"


def _version() -> str:
    """The version that is installed, or that of this checkout."""
    # Here, so that a command soon begins: an interrupt before is a traceback.
    import importlib.metadata
    import pathlib
    import tomllib
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError:
        path = pathlib.Path(__file__).resolve().parents[1] / "pyproject.toml"
        return tomllib.loads(path.read_text("utf-8"))["project"]["version"]


def __getattr__(name):
    if name == "__version__":
        return _version()
    if name not in PUBLIC:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}" + (
                ': what it was is parity.invariance(…, ways=["cache"]).'
                if name == "cache" else ""))
    return getattr(importlib.import_module(f"parity.{PUBLIC[name]}"), name)


def __dir__():
    return sorted(PUBLIC)
