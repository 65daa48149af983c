"""Models on sequences of more than 512 tokens, where attention is in blocks.

A fast form goes over blocks of queries and keys there, and its steps are not
seen: what a model answers is compared, its loss and its gradients. Sequences
are not whole blocks, or two exactly; rows are padded on either side, between
and everywhere, so that some blocks hold keys that nobody may read. Scores are
far apart, so that the highest of a query is now in one block, now in another.
"""

import dataclasses
import functools

from transformer_contract.config import PLAIN
from transformer_contract.weights import probe_weights
from parity.check import cases, wide
from parity.check.cases import Case

#: What the kernels of queries are multiplied by.
SHARPER = 8

USUAL = PLAIN.replace(
    source_vocab=13, target_vocab=13, d_model=12, n_heads=1, d_ff=10,
    n_encoder_layers=1, n_decoder_layers=1, max_length=1030, norm_eps=1e-5,
    final_norm_eps=1e-3, dropout=0.0)

#: What each is, its config, [B, S, T] of its batch, and the number that says
#: how its rows are padded. The last three are of one stack, in which attention
#: is more than a softmax under a mask.
MODELS = {
    "": (USUAL.replace(positions="halves"), (3, 590, 540), 5),
    "whole blocks": (USUAL.replace(
        positions="rotary_halves", residual="pre", n_heads=2, n_kv_heads=1,
        pad_id=3), (2, 1024, 512), 3),
    "relative positions": (USUAL.replace(
        positions="relative", stacks="decoder", tied="none"), (1, 520, 520),
        0),
    "a rounded softmax": (USUAL.replace(
        softmax_rounding="float32", attention_bias="none", stacks="encoder",
        tied="none"), (1, 520, 520), 2),
    "dropout": (USUAL.replace(
        dropout=0.3, stacks="encoder", tied="none"), (1, 520, 520), 0),
}


class LongModel(wide.WideModel):
    """A model of the wide check whose sequences are long."""

    def weights(self):
        """Float64 arrays by name, whose scores are far apart."""
        arrays = probe_weights(self.config, 200 + self.number)
        for name, array in arrays.items():
            if name.endswith("query.kernel"):
                array *= SHARPER
        return arrays

    def cases(self):
        """What the model answers, with gradients, and attention alone."""
        config, batch = self.config, self.main
        case = cases.gradients_case(batch, config.pad_id)
        yield dataclasses.replace(
            case, name="transformer, many tokens", kind="answers",
            tiers=wide.TIERS, key=(self.number, 3) if config.dropout else None)
        layer = cases.first_layer(config)
        ids, mask = ((batch.target, batch.target_mask)
                     if layer.startswith("decoder")
                     else (batch.source, batch.source_mask))
        x = cases.values("long", *ids.shape, config.d_model)
        x[:, ids.shape[1] // 2:] *= 10
        yield Case("multi_head_attention, many tokens, large",
                   "multi_head_attention", (x, x, mask), kind="answers",
                   path=f"{layer}.self_attention", tiers=wide.TIERS)


@functools.cache
def models():
    """The LongModels."""
    return tuple(
        LongModel(", ".join(filter(None, ("long", what))), number, config, 1,
                  2, (shape,))
        for what, (config, shape, number) in MODELS.items())
