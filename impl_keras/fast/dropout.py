"""The values that dropout keeps, drawn in few operations."""

from impl_keras.dropout import kept, native_kept
from impl_keras.fast.random import fold_in_each


def draw(key, places, rate, native):
    """The values that a run keeps in every place: path -> bool.

    Places of one shape are drawn together, which is less to compile.
    """
    drawn = {}
    for shape in dict.fromkeys(places.values()):
        names = [name for name in places if places[name] == shape]
        keys = fold_in_each(key, names)
        masks = (native_kept if native else kept)(keys, shape, rate)
        drawn |= {name: masks[i] for i, name in enumerate(names)}
    return drawn
