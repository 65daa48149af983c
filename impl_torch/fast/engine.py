"""The fast form's engine; functions without one are the readable engine's."""

import torch

from transformer_contract import fast_forms
from transformer_contract.batch import check_inputs, check_search
from transformer_contract.config import CHOICES
from impl_torch import engine
from impl_torch.attention import MultiHeadAttention
from impl_torch.dialects.attention import (
    DialectAttention, RelativeAttention, RotaryAttention)
from impl_torch.dialects.projection import (
    BiasedTiedProjection, Projection, ProjectionWithoutBias)
from impl_torch.dropout import evaluating
from impl_torch.engine import drawn, exported, on, to_native, to_numpy
from impl_torch.fast import (
    attention, embedding, feed_forward, layer_norm, linear)
from impl_torch.fast.search import Beam, Greedy, Sample
from impl_torch.fast.train import Trainer, gradients_of
from impl_torch.feed_forward import FeedForward
from impl_torch.layer_norm import LayerNorm
from impl_torch.linear import Linear, Table
from impl_torch.parameters import home, modules
from impl_torch.projection import TiedProjection

#: The fast kind of each module that has one; they hold the same.
FAST = {
    Table: embedding.Table,
    Linear: linear.Linear,
    Projection: linear.Projection,
    ProjectionWithoutBias: linear.ProjectionWithoutBias,
    TiedProjection: linear.TiedProjection,
    BiasedTiedProjection: linear.BiasedTiedProjection,
    MultiHeadAttention: attention.MultiHeadAttention,
    DialectAttention: attention.DialectAttention,
    RotaryAttention: attention.RotaryAttention,
    RelativeAttention: attention.RelativeAttention,
    FeedForward: feed_forward.FeedForward,
    LayerNorm: layer_norm.LayerNorm,
}

#: Steps that are computed together with others, and so are not seen.
FUSED = fast_forms.FUSABLE

#: What attention in one call knows: field of a config -> its words.
ATTENTION = {"softmax_rounding": ("none",), "positions": tuple(
    word for word in CHOICES["positions"] if word != "relative")}

SEARCHES = {"greedy": Greedy, "sample": Sample, "beam": Beam}


def __getattr__(name):
    return getattr(engine, name)


def set_precision():
    """The readable form's; but memory is not filled before it is written.

    PyTorch does so where its algorithms are deterministic, 250 times a token.
    """
    settings = engine.set_precision()
    torch.utils.deterministic.fill_uninitialized_memory = False
    return settings


def not_fused(config, settings=None):
    """What is left to the readable form, in words each.

    Of a model, and of a search with some settings.
    """
    return tuple(fast_forms.left(
        config, attention=ATTENTION, attention_in_training={"dropout": (0,)}))


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component of fast modules; see the reference's engine."""
    module = engine.build(component, config, weights, dtype, device)
    for _, below in modules(module):
        below.__class__ = FAST.get(type(below), type(below))
    return module


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by every weight; not by steps."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with evaluating(model), on(home(model)):
        loss, by_weight = gradients_of(
            model, [to_native(value, home(model)) for value in inputs],
            to_native(labels, home(model)), drawn(model, source, target, key))
    return to_numpy(loss), exported(model, by_weight)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the reference's engine.

    For a model that fast/ does not know it is the readable form's own search.
    """
    if not fast_forms.searches(model.config):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with torch.no_grad(), evaluating(model), on(home(model)):
        tokens, scores = SEARCHES[settings.method](
            model, to_native(source, home(model)), settings, rows).run()
        return {"tokens": to_numpy(tokens), "scores": to_numpy(scores)}
