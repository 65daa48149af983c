"""A Transformer's steps, loss and gradients as one compiled program.

It is compiled once for each shape of the weights and inputs, so that it serves
a model's other weights as well.
"""

import functools

import jax
from flax import nnx

from transformer_contract.batch import check_inputs
from transformer_contract.trace import tracing
from impl_jax.engine import export, to_native, to_numpy
from impl_jax.loss import cross_entropy
from impl_jax.parameters import home, paths


@functools.partial(jax.jit, static_argnums=0)
def _answers(graph, weights, rest, inputs, labels):
    def loss_of(weights):
        traced = nnx.merge(graph, weights, rest)  # nnx: new, with new ids
        config = traced.config
        with tracing(paths(traced)) as trace:
            output = traced(*inputs)
        return cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing,
                             config.smoothing), dict(trace.values)

    return jax.value_and_grad(loss_of, has_aux=True)(weights)


def answers(model, *inputs):
    """Every step by name, the loss, and its gradient by every weight.

    Args:
        inputs: source, target, both masks, and labels.
    """
    check_inputs(model.config, *inputs[:-1])
    graph, weights, rest = nnx.split(model, nnx.Param, ...)
    *inputs, labels = (to_native(value, home(model)) for value in inputs)
    (loss, steps), gradients = _answers(graph, weights, rest, inputs, labels)
    return ({name: to_numpy(value) for name, value in steps.items()},
            to_numpy(loss), export(nnx.merge(graph, gradients, rest)))
