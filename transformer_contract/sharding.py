"""How a model's weights are divided on a mesh (Shoeybi et al. 2019, §3).

Heads, inner vectors and vocabularies are divided along the axis "model": the
first of two linear maps by its columns, the second by its rows, so that one sum
over the devices follows each pair. Batches are divided along "data".
"""

from parity_io.errors import InputError

#: The end of a weight's name -> which of its axes is divided.
DIVIDED = {
    **{f"attention.{name}.{leaf}": axis for name in ("query", "key", "value")
       for leaf, axis in (("kernel", 1), ("bias", 0))},
    "attention.output.kernel": 0,
    **{f"feed_forward.{name}.{leaf}": axis for name in ("inner", "gate")
       for leaf, axis in (("kernel", 1), ("bias", 0))},
    "feed_forward.outer.kernel": 0,
    "embedding.table": 0,
    "projection.kernel": 1,
    "projection.bias": 0,
}


def divided_axis(name):
    """The axis along which a weight is divided, by its name; None if whole."""
    return next((axis for end, axis in DIVIDED.items()
                 if name.endswith(end)), None)


def copies(name, axes, sharded, whole=False):
    """How often all devices together hold each value of a weight.

    Args:
        axes: {"data": devices, "model": devices}.
        sharded: whether weights are divided along "data" too.
        whole: whether they are divided along nothing.
    """
    divided = divided_axis(name) is not None and not whole
    return (1 if sharded else axes["data"]) * (1 if divided else axes["model"])


def check_mesh(config, axes, rows):
    """Check that a mesh divides a model and its batches.

    Args:
        config: a TransformerConfig.
        axes: {"data": devices, "model": devices}.
        rows: how many rows a batch has.

    Raises:
        InputError: it does not divide them evenly; it names what it is.
    """
    sizes = {"heads": config.n_heads, "heads of keys": config.kv_heads,
             "inner features": config.d_ff,
             "source tokens": config.source_vocab,
             "target tokens": config.target_vocab}
    for axis, what, size in (("data", "rows of a batch", rows), *(
            ("model", *item) for item in sizes.items())):
        if size % axes[axis]:
            raise InputError(
                f"a mesh with {axis}={axes[axis]} does not divide {size} "
                f"{what}; choose a divisor of {size}.")
