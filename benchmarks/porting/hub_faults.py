"""Faults of keras_hub's BERT, against Hugging Face's and against itself."""

import functools
import importlib.util

from benchmarks.porting import hub
from benchmarks.porting.across import of_bert, of_berts, of_encoders
from benchmarks.porting.planted import Planted
from parity.ports import backend

#: Faults that need other code than keras_hub's.
NOT_HERE = {"cut out of time", "no residual", "token types missing"}

#: On JAX its attention casts to float32; the order of its sums is not known,
#: so that this is told, and is not shown to be all.
CAST = [("dtype", "float64", "float32")]

#: What it has when it is right.
RIGHT = {"act": "gelu", "eps": 1e-12}


def both(within, wrong, change, planted, seed=0):
    """Two models, each with its inputs, of which the second is wrong.

    Args:
        within: whether the first is keras_hub's too.
        wrong: fields that the second has otherwise.
        change: what is done to its arrays.
        planted: the Planted, of which nothing is asked.
        seed: of what is drawn.
    """
    model, mine, (ids, mask), arrays = of_bert(seed)
    changed = {path: [*each] if isinstance(each, tuple) else each
               for path, each in arrays.items()}
    if change:
        change(changed)
    given = ({"token_ids": ids, "padding_mask": mask,
              "segment_ids": ids * 0},), {}
    a = (hub.encoder(arrays, RIGHT), *given) if within else (model, mine, {})
    return a, (hub.encoder(changed, RIGHT | wrong), *given)


def keras_hub():
    """All of them, where keras_hub is installed, on the backend of Keras."""
    if importlib.util.find_spec("keras_hub") is None:
        return
    where = f"keras_hub on {backend('keras')}"
    for within in (True, False):
        for name, causes, wrong, change, at in (
                *of_encoders("gelu", "1e-12"), *of_berts()):
            if name not in NOT_HERE:
                if not within and backend("keras") == "jax":
                    causes = [*causes, *CAST]
                yield Planted(
                    where if within else f"BERT to {where}", name, causes,
                    at=at, across=not within, models=functools.partial(
                        both, within, wrong, change))
