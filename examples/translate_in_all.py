"""Translate dates by one file of weights in every framework that is here.

    python translate_in_all.py dates_torch.safetensors …
"""

import contextlib
import importlib
import sys

import dates
import numpy as np

#: A package -> how its framework makes an array of ids.
ARRAYS = {"reference_numpy": ("numpy", "asarray"),
          "impl_torch": ("torch", "as_tensor"),
          "impl_keras": ("keras.ops", "convert_to_tensor"),
          "impl_jax": ("jax.numpy", "asarray"),
          "impl_mlx": ("mlx.core", "array")}


def faces():
    """A package that is here -> how it loads a model and makes an array."""
    found = {}
    for name, (module, make) in ARRAYS.items():
        with contextlib.suppress(ImportError):
            found[name] = (importlib.import_module(name).load,
                           getattr(importlib.import_module(module), make))
    return found


def answers(path, load, array):
    """What a package answers to dates.TEXTS: ids [N T]."""
    found = load(path).generate(
        array(dates.asked()), max_tokens=dates.TARGET)
    return np.asarray(found).tolist()


def main(*paths):
    """The answers by path and package; those of a path are the same."""
    here = faces()
    found = {path: {name: answers(path, *face) for name, face in here.items()}
             for path in paths}
    for path, by_name in found.items():
        print(f"{path}, in {', '.join(by_name)}:")
        first, *others = by_name.values()
        for source, target in zip(dates.TEXTS, dates.texts(first)):
            print(f"    {source} -> {target}")
        if any(other != first for other in others):
            sys.exit(f"they differ: {by_name}")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
