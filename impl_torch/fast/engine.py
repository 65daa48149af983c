"""The fast form's engine; functions without one are the readable engine's."""

import torch
from torch import nn

from transformer_contract import fast_forms
from transformer_contract.batch import check_inputs, check_search
from transformer_contract.config import CHOICES
from transformer_contract.weights import no_weights
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

READABLE = {fast: kind for kind, fast in FAST.items()}

#: What described a Transformer when it was built, by its config.
PLANS = {}

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


def described(model):
    """What a model's parts are, weights left out: {path: ...}."""
    return fast_forms.described(
        list(modules(model)), torch.Tensor, {"home", "training"}, FAST)


def plan_of(config):
    """What describes a model as built; one is built if none has been."""
    if config not in PLANS:  # of a model from another process
        build("transformer", config, no_weights(config))
    return PLANS[config]


def strange(model):
    """What of a model is not as build made it: a path; "" if all is."""
    if nn.modules.module._has_any_global_hook():
        return "a hook of all modules"
    weights = dict(model.named_parameters())
    for name, weight in weights.items():
        if (weight._backward_hooks or not weight.is_contiguous()
                or weight.dtype != next(iter(weights.values())).dtype):
            return name
    return fast_forms.strange(described(model), plan_of(model.config))


def as_built(model):
    """Whether all of a model is as build made it; warns of what is not.

    Its parts become those of the form that computes.
    """
    built = fast_forms.as_built(strange(model))
    given_kinds(model, FAST if built else READABLE)
    return built


def given_kinds(model, kinds):
    """The model, whose parts get other kinds: {a kind: its other}."""
    for _, below in modules(model):
        below.__class__ = kinds.get(type(below), type(below))
    return model


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component of fast modules; see the reference's engine."""
    module = given_kinds(
        engine.build(component, config, weights, dtype, device), FAST)
    if component == "transformer":
        PLANS.setdefault(config, described(module))
    return module


def forward(model, source, target, source_mask, target_mask, key=None):
    """Every step by name; see the readable engine."""
    as_built(model)
    return engine.forward(
        model, source, target, source_mask, target_mask, key)


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    as_built(model)
    return engine.predict(model, source, target, source_mask, target_mask)


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by every weight; not by steps."""
    if not as_built(model):
        return engine.gradients(model, source, target, source_mask,
                                target_mask, labels, key)
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with evaluating(model), on(home(model)):
        loss, by_weight = gradients_of(
            model, [to_native(value, home(model)) for value in inputs],
            to_native(labels, home(model)), drawn(model, source, target, key))
    return to_numpy(loss), exported(model, by_weight)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    if not as_built(model):
        return engine.trainer(model, training)
    return fast_forms.watched(Trainer(model, training))


def train_step(trainer, sources, targets):
    """Make one step on A batches; see the readable engine."""
    if isinstance(trainer, Trainer):
        fast_forms.check_trained(strange(trainer.model), trainer)
        given_kinds(trainer.model, FAST)
    return engine.train_step(trainer, sources, targets)


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the reference's engine.

    For a model that fast/ does not know it is the readable form's own search.
    """
    if not as_built(model) or not fast_forms.searches(model.config):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with torch.no_grad(), evaluating(model), on(home(model)):
        tokens, scores = SEARCHES[settings.method](
            model, to_native(source, home(model)), settings, rows).run()
        return {"tokens": to_numpy(tokens), "scores": to_numpy(scores)}
