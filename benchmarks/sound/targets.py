"""Makers by name: ``parity compare targets.py:NAME_a targets.py:NAME_b``."""

from benchmarks.sound.pair import pair


def __getattr__(name):
    """The maker of one side: NAME_a or NAME_b."""
    stem, _, side = name.rpartition("_")
    if side not in ("a", "b") or not stem or stem.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(pair(stem), side)
    except KeyError:
        raise AttributeError(name) from None
