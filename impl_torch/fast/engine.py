"""The fast form's engine; functions without one are the readable engine's."""

import torch
from torch import nn

from contract import fast_forms
from contract.batch import check_inputs, check_search
from contract.config import CHOICES
from impl_torch import engine
from impl_torch.attention import MultiHeadAttention
from impl_torch.engine import drawn, on, to_native, to_numpy
from impl_torch.fast import (
    attention, embedding, feed_forward, layer_norm, linear)
from impl_torch.fast.search import Beam, Greedy, Sample
from impl_torch.fast.train import Trainer, gradients_of
from impl_torch.feed_forward import FeedForward
from impl_torch.layer_norm import LayerNorm
from impl_torch.parameters import PARAMETERS, leaves, modules
from impl_torch.projection import (
    BiasedTiedProjection, Projection, ProjectionWithoutBias, TiedProjection)

#: The fast kind of each module that has one; they hold the same.
FAST = {
    nn.Embedding: embedding.Table,
    nn.Linear: linear.Linear,
    Projection: linear.Projection,
    ProjectionWithoutBias: linear.ProjectionWithoutBias,
    TiedProjection: linear.TiedProjection,
    BiasedTiedProjection: linear.BiasedTiedProjection,
    MultiHeadAttention: attention.MultiHeadAttention,
    FeedForward: feed_forward.FeedForward,
    LayerNorm: layer_norm.LayerNorm,
}
PARAMETERS |= {
    FAST[kind]: held for kind, held in PARAMETERS.items() if kind in FAST}

#: What else build makes of PyTorch's own.
KINDS = {nn.ModuleList, nn.Embedding, nn.Linear}

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


def known(module):
    """Whether a module is of a kind that build makes, and no hook sees it."""
    hooks = (module._forward_pre_hooks, module._forward_hooks,
             module._backward_pre_hooks, module._backward_hooks)
    return not (any(hooks) or nn.modules.module._has_any_global_hook()) and (
        type(module) in KINDS
        or fast_forms.defined_in(module, __package__.partition(".")[0]))


def as_built(model):
    """Whether all parts are as build makes them; warns of one that is not."""
    return fast_forms.as_built(modules(model), known)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component of fast modules; see the reference's engine."""
    module = engine.build(component, config, weights, dtype, device)
    for _, below in modules(module):
        below.__class__ = FAST.get(type(below), type(below))
    return module


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by every weight; not by steps."""
    if not as_built(model):
        return engine.gradients(model, source, target, source_mask,
                                target_mask, labels, key)
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with on(model.home):
        loss, by_weight = gradients_of(
            model, [to_native(value, model.home) for value in inputs],
            to_native(labels, model.home), drawn(model, source, target, key))
    return to_numpy(loss), {
        name: convert(to_numpy(gradient)) for (name, _, convert), gradient
        in zip(leaves(model), by_weight)}


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    if not as_built(model):
        return engine.trainer(model, training)
    return Trainer(model, training)


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the reference's engine.

    For a model that fast/ does not know it is the readable form's own search.
    """
    if not fast_forms.searches(model.config) or not as_built(model):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with torch.no_grad(), on(model.home):
        tokens, scores = SEARCHES[settings.method](
            model, to_native(source, model.home), settings, rows).run()
        return {"tokens": to_numpy(tokens), "scores": to_numpy(scores)}
