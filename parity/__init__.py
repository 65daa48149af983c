"""The harness: it runs the reference and the ports, and compares.

For models of other people: ``parity.diff(a, b, *inputs)`` says where two
differ and why, and ``parity.exact(model, *inputs)`` runs one with nothing
shorter than float64 inside. Step by step: ``parity.trace(model, *inputs)``
looks into one, ``parity.compare(a, b)`` says where two part,
``parity.explain(comparison, a, b)`` why. ``parity.invariance(model, *inputs)``
asks one again in other batches, and with its cache. For their tests:
``parity.assert_parity(actual, expected)``.
"""

import importlib
import importlib.metadata
import importlib.util
import pathlib
import tomllib

#: A package of ours with a name that others may have as well.
CONTRACT = pathlib.Path(__file__).resolve().parent.parent / "contract"

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
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError:
        path = CONTRACT.parent / "pyproject.toml"
        return tomllib.loads(path.read_text("utf-8"))["project"]["version"]


def clash():
    """In a sentence, that ``contract`` is another's package here; or "".

    Importing this package says nothing of it, since pytest loads the plugin in
    every project of its user, who may well have a ``contract``.
    """
    spec = importlib.util.find_spec("contract")
    if spec is not None and CONTRACT in [
            pathlib.Path(place).resolve()
            for place in spec.submodule_search_locations or ()]:
        return ""
    return ("parity needs its own package 'contract', but Python finds "
            f"{spec and spec.origin}; rename that, uninstall it, or run in "
            "another folder.")


def __getattr__(name):
    if name == "__version__":
        return _version()
    if name not in PUBLIC:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}" + (
                ': what it was is parity.invariance(…, ways=["cache"]).'
                if name == "cache" else ""))
    if words := clash():
        raise ImportError(words)
    return getattr(importlib.import_module(f"parity.{PUBLIC[name]}"), name)


def __dir__():
    return sorted(PUBLIC)
