"""What goes wrong at a model's ends: types, begins, outputs, single stacks."""

import numpy as np

from parity.causes.cause import Cause
from parity.causes.faults.arrays import ends
from parity.causes.faults.putting import (
    CALLS, configured, module_of, named_by, numpy_of, replaced, tapped)

ENDS = "it is between modules, where a sum or a factor has no name of its own"
MASKED = "a mask that a model makes for itself is not seen from outside"

#: A model of types of tokens, and where they are seen first.
TYPES = {"topic": "embedding", "case": "token_embedding", "step": "typed",
         "changes": {"token_types": 3}, "not_explained": ENDS}


def typed_by(function):
    """Other vectors of types: ``function(array)``."""
    return named_by(ends("types"), lambda array, config: function(array))


#: A model with a head, and where it is seen first.
HEAD = {"topic": "output", "changes": {"output_transform": True},
        "not_explained": ENDS}


def bypassed(old, port):
    """Call the head, so that Keras makes its weights, and return its input."""
    def made(self, x):
        result = old(self, x)
        return (x, result[1]) if port == "numpy" else x
    return made


def unnormalised(old, port):
    """The call of a head that ends in what is activated."""
    def made(self, x):
        inner = self.inner(x)
        steps = {"inner": inner, "activated": self.activation(inner)}
        return tapped(port, self, {
            name: numpy_of(port, value) for name, value in steps.items()})
    return made


def instead(file, name, other):
    """Call another class's method in the place of a class's."""
    return replaced(file, f"{name}.call", lambda old, port: getattr(
        getattr(module_of(port, file), other), CALLS.get(port, "__call__")))


def everything_seen(old, port):
    """A decoder's call without any mask, not even of padding."""
    def call(self, source, target, source_mask, target_mask):
        return old(self, source, target, source_mask, target_mask | True)
    return call


def earlier_seen(old, port):
    """An encoder's passage of a source with a decoder's mask.

    The model refuses such a mask from outside, so it is put behind the call.
    """
    causal_mask = module_of(port, "masks").causal_mask

    def encode(self, source, source_mask):
        return old(self, source, source_mask & causal_mask(source.shape[1]))
    return encode


CAUSES = (
    Cause(name="types of tokens ignored", sentence="Their vectors are zero.",
          put=typed_by(lambda array: 0 * array), **TYPES),
    Cause(name="types of tokens a row further", sentence="Type n has the "
          "vector of type n + 1.",
          put=typed_by(lambda array: np.roll(array, -1, 0)), **TYPES),
    Cause("a target begins with its token", "embedding", "Where Tensor2Tensor "
          "and Marian have zeros.", put=configured(begin="token"),
          changes={"begin": "zero"}, case="decode", step="decoded",
          not_explained=ENDS),
    Cause("a target begins with zeros", "embedding", "As in Tensor2Tensor and "
          "Marian, where there should be its token's embedding.",
          put=configured(begin="zero"),
          case="decode", step="decoded", not_explained=ENDS),
    Cause("vectors not divided before the projection", "output", "1/√d_model "
          "is left out.", put=configured(output_scale="none"),
          changes={"output_scale": "root"}, case="project", step="output",
          not_explained=ENDS),
    Cause("vectors divided before the projection", "output", "By √d_model, as "
          "in T5's first version.", put=configured(output_scale="root"),
          case="project", step="output", not_explained=ENDS),
    Cause(name="no head before the projection", sentence="Vectors reach it as "
          "they are.", put=replaced(
              "dialects.head", "TransformHead.call", bypassed),
          case="project", step="output", **HEAD),
    Cause(name="a head without its norm", sentence="What is activated reaches "
          "the projection.", put=replaced(
              "dialects.head", "TransformHead.call", unnormalised),
          case="head", step="norm.mean", **HEAD),
    Cause("a decoder alone sees later tokens", "masks", "It has no mask, not "
          "even of padding.", put=replaced(
              "dialects.one_stack", "DecoderModel.call", everything_seen),
          changes={"stacks": "decoder"}, case="transformer",
          step="decoder.layers.0.self_attention.weights",
          not_explained=MASKED),
    Cause("an encoder alone sees no later tokens", "masks", "Its mask is a "
          "decoder's.", put=replaced(
              "dialects.one_stack", "EncoderModel.encode", earlier_seen),
          changes={"stacks": "encoder"}, case="encode", step="memory",
          not_explained=MASKED),
)
