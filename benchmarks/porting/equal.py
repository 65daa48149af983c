"""Pairs that are equal, of other weights and inputs: nothing may be named."""

import functools

from benchmarks.porting.across import (
    encoder_of, llama_of, of_bert, of_llama, of_nn, ported, twice)
from benchmarks.porting.hugging_face import CLASSES, copies
from benchmarks.porting.kits import KITS
from benchmarks.porting.planted import Planted

#: Draws besides the one of the other faults.
SEEDS = 1, 2, 3

#: An original, its port, and what the port has.
ORIGINALS = {
    "BERT": (of_bert, encoder_of, {"act": "gelu", "eps": 1e-12}),
    "torch.nn": (of_nn, encoder_of, {}), "Llama": (of_llama, llama_of, {})}


def equal():
    """Equal models of every family, drawn anew."""
    for seed in SEEDS:
        for family in CLASSES:
            yield Planted(family, f"equal, draw {seed}", [],
                          models=functools.partial(copies, seed=seed))
        for name in KITS:
            yield Planted(name, f"equal, draw {seed}", [],
                          models=functools.partial(
                              twice, name, {}, None, seed=seed))
            for original, (of, port, has) in ORIGINALS.items():
                yield Planted(
                    f"{original} to {name}", f"equal, draw {seed}", [],
                    across=True, models=functools.partial(
                        ported, of, port, name, has, None, seed=seed))
