"""How JAX and NNX are asked what parity_tests/ports/test_citizen.py asks."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint
from flax import nnx, serialization

from impl_jax import Transformer, engine
from impl_jax.dropout import Dropout
from impl_jax.layer_norm import LayerNorm
from impl_jax.parameters import leaves

NAME, PACKAGE, FRAMEWORK = "jax", "impl_jax", "import jax, flax.nnx"

#: What makes an array of the framework.
ARRAY = "jax.numpy.asarray"

#: Who computes in float64 enables it, before anything else.
jax.config.update("jax_enable_x64", True)


def new(config, seed=0):
    """A new model by NNX's own random numbers."""
    return Transformer(config, rngs=nnx.Rngs(seed))


def ids(array):
    """Whole numbers as an array of JAX."""
    return jnp.asarray(array, jnp.int32)


def numpy(array):
    """JAX's array as one of NumPy."""
    return np.asarray(array)


def logits(model, source, target, training=False, **masks):
    """What a model answers, dropping if it trains."""
    (model.train if training else model.eval)()
    return numpy(model(ids(source), ids(target), **masks))


def dropped(array, rate):
    """What is left of an array in training."""
    return numpy(Dropout(rate, rngs=nnx.Rngs(0))(jnp.asarray(array)))


def abstract(config):
    """A model whose weights are shapes: what a file is read into."""
    return nnx.eval_shape(lambda: new(config))


def native_round_trip(model, config, path):
    """New models that have read what JAX's libraries have written."""
    graph, weights, rest = nnx.split(model, nnx.Param, ...)
    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(path / "weights", weights)
        checkpointer.wait_until_finished()
        by_orbax = new(config, seed=1)
        nnx.update(by_orbax, checkpointer.restore(
            path / "weights", nnx.state(abstract(config), nnx.Param)))
    written = serialization.to_bytes(nnx.to_pure_dict(weights))
    by_bytes = new(config, seed=1)
    nnx.update(by_bytes, serialization.from_bytes(
        nnx.to_pure_dict(nnx.state(by_bytes, nnx.Param)), written))
    return {"orbax": by_orbax, "bytes": by_bytes,
            "merge": nnx.merge(graph, weights, rest)}


def native_refusals(model, other_config, path):
    """What must not be read: another model's file, a cut one, a renamed one."""
    weights = nnx.to_pure_dict(nnx.state(model, nnx.Param))
    written = serialization.to_bytes(weights)
    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(path / "weights", nnx.state(model, nnx.Param))
    renamed = dict(weights)
    renamed["coder"] = renamed.pop("encoder")
    own = nnx.to_pure_dict(nnx.state(new(model.config), nnx.Param))

    def of_another():
        with orbax.checkpoint.StandardCheckpointer() as checkpointer:
            return checkpointer.restore(path / "weights", nnx.state(
                abstract(other_config), nnx.Param))

    return {
        "another config": of_another,
        "a cut file": lambda: serialization.from_bytes(own, written[:-1000]),
        "a renamed array": lambda: serialization.from_bytes(
            own, serialization.to_bytes(renamed))}


def copies(model):
    """Copies in each way that NNX and Python have."""
    return {"clone": nnx.clone(model), "deepcopy": copy.deepcopy(model),
            "pickle": pickle.loads(pickle.dumps(model)),
            "split and merge": nnx.merge(*nnx.split(model))}


def compiled(model):
    """The call, compiled, exported, mapped over rows, or kept in part; it
    takes ids, and both masks or none."""
    graph, state = nnx.split(model)

    def call(*inputs):
        return nnx.merge(graph, state)(*inputs)

    def by_export(*inputs):
        (rows,) = jax.export.symbolic_shape("rows")
        shapes = [jax.ShapeDtypeStruct((rows, *x.shape[1:]), x.dtype)
                  for x in inputs]
        return jax.export.deserialize(jax.export.export(jax.jit(call))(
            *shapes).serialize()).call(*inputs)

    def by_rows(*inputs):
        return jax.vmap(lambda *row: call(*(x[None] for x in row))[0])(
            *inputs)

    remat = nnx.jit(nnx.remat(lambda model, *inputs: model(*inputs)))
    ways = {"nnx.jit": lambda *inputs: nnx.jit(
                lambda model, *inputs: model(*inputs))(model, *inputs),
            "jax.jit": jax.jit(call), "export of any number of rows": by_export,
            "vmap": by_rows, "remat": lambda *inputs: remat(model, *inputs)}
    return {way: lambda source, target, *masks, function=function: numpy(
        function(ids(source), ids(target), *map(jnp.asarray, masks)))
        for way, function in ways.items()}


def second_derivative(model, loss, along):
    """Of loss(model) by every weight, along a direction: arrays by name."""
    graph, weights, rest = nnx.split(model, nnx.Param, ...)
    direction = nnx.clone(model)
    for weight in leaves(direction):
        weight.set(jnp.asarray(along[weight.name]))

    def slope(weights):
        slopes = jax.grad(lambda weights: loss(
            nnx.merge(graph, weights, rest)))(weights)
        return sum(jnp.vdot(*pair) for pair in zip(*map(
            jax.tree.leaves, (slopes, nnx.state(direction, nnx.Param)))))

    return engine.export(nnx.merge(
        graph, jax.jit(jax.grad(slope))(weights), rest))


def trained(model, loss):
    """Of loss(model, call) in training: (loss, what else it returns, its
    gradient by every weight: arrays by name)."""
    model.train()
    (value, more), slopes = nnx.value_and_grad(
        lambda model: loss(model, model), has_aux=True)(model)
    graph, _, rest = nnx.split(model, nnx.Param, ...)
    return value, more, engine.export(nnx.merge(graph, slopes, rest))


def loop(model, batches):
    """NNX's own, with an optimiser of optax."""
    model.train()
    optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, source, target, labels):
        def loss_of(model):
            return optax.softmax_cross_entropy_with_integer_labels(
                model(source, target), labels,
                where=(labels != model.config.pad_id)[..., None]).mean()
        loss, gradients = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, gradients)
        return loss

    for batch in batches:
        yield float(step(model, optimizer, *map(ids, batch)))


class Gained(LayerNorm):
    """A norm with one weight more."""

    def __init__(self, d_model, eps):
        super().__init__(d_model, eps, rngs=nnx.Rngs(0))
        self.gain = nnx.Param(jnp.ones(d_model, jnp.float32))

    def __call__(self, x):
        """Normalise x [B T D] over D, then multiply."""
        return super().__call__(x) * self.gain
