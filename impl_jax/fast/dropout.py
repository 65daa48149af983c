"""What dropout keeps, drawn in few operations."""

from impl_jax.dropout import kept, native_kept
from impl_jax.fast.random import fold_in_each


def draw(key, places, rate, native):
    """What a run keeps in every place: path -> bool.

    Places of one shape are drawn together, which asks less of a compiler.
    """
    drawn = {}
    for shape in dict.fromkeys(places.values()):
        names = [name for name in places if places[name] == shape]
        keys = fold_in_each(key, names)
        masks = (native_kept(keys[0], (len(names), *shape), rate) if native
                 else kept(keys, shape, rate))
        drawn |= dict(zip(names, masks))
    return drawn
