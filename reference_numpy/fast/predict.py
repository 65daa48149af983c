"""What a model predicts, without any of its steps.

It is the way there of training's (fast/rows.py), without a way back: a few
arrays serve all layers, and sources are read as far as they are not masked.
"""

import numpy as np

from transformer_contract import packing
from reference_numpy.fast.packing import PackedSide
from reference_numpy.fast.rows import Pairs, Rows
from reference_numpy.fast.weights import Plain
from reference_numpy.projection import log_softmax


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output: [B T V]; see Transformer.forward."""
    count, length = target.shape
    masks = [np.broadcast_to(mask, (count, *mask.shape[1:]))
             for mask in (source_mask, target_mask)]
    seen = np.broadcast_to(masks[0].any(axis=(1, 2)), source.shape)
    rows = [slice(0, count)]
    batch = Pairs(
        PackedSide(source, packing.ends(seen, False), rows),
        PackedSide(target, np.full(count, length), rows), None, masks, 0, {})
    logits, _ = Rows(
        model.config, Plain(model), None, batch, 0, None).forward(model)
    if model.config.output == "log_probs":
        logits = log_softmax(logits)
    return logits.reshape(count, length, -1)
