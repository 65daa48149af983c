"""The port's one face to the harness."""

import collections
import contextlib

import flax
import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from flax import nnx

import transformer_contract.weights
from transformer_contract import components
from transformer_contract.batch import check_inputs, check_pairs, check_search
from transformer_contract.dropping import dropping, places
from transformer_contract.trace import tracing
from transformer_contract.weights import check
from impl_jax import parts, random
from impl_jax.dropout import draw, evaluating, reseed, unmoved
from impl_jax.loss import cross_entropy
from impl_jax.masks import padding_mask
from impl_jax.parameters import home, leaves, modules, paths
from impl_jax.train import Trainer

NAME = "jax"


def versions():
    """What computes here, by name."""
    return {"jax": jax.__version__, "jaxlib": jaxlib.__version__,
            "flax": flax.__version__}


def set_precision():
    """Float64 and full-precision products; what was set, by name."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    return {name: getattr(jax.config, name) for name in (
        "jax_enable_x64", "jax_default_matmul_precision")}


def devices():
    """The devices that a real computation ran on."""
    names = []
    for name in ("cpu", "cuda", "tpu"):
        with contextlib.suppress(Exception):
            x = jnp.ones((2, 2), device=jax.devices(name)[0])
            if (x @ x).sum().item() == 8:
                names.append(name)
    return names


def to_native(value, device):
    """An array as JAX's own copy, same dtype."""
    value = np.array(value)
    # jax: takes no other order of bytes than the machine's.
    value = value.astype(value.dtype.newbyteorder("="), copy=False)
    return jax.device_put(value, jax.devices(device)[0])


def to_numpy(array):
    """JAX's array as a NumPy array of the same dtype."""
    return np.asarray(array)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component and load its weights; see the reference's engine.

    It is in evaluation mode.
    """
    make, arguments = components.component(__package__, component, config)
    # nnx: what is drawn here would be replaced; only shapes are computed
    module = nnx.eval_shape(lambda: make(*arguments, rngs=unmoved()))
    for _, below in modules(module):
        below.home = device
    reseed(module, 0)
    module.eval()
    check(weights, {
        weight.name: weight.get().shape for weight in leaves(module)})
    for weight in leaves(module):
        array = to_native(
            weights[weight.name].astype(dtype, copy=False), device)
        if array.dtype != dtype:
            raise RuntimeError(f"JAX made {dtype} {array.dtype}; call "
                               "set_precision before anything else")
        weight.set(array)
    return module


def export(module):
    """The weights under their canonical names, as arrays."""
    return {weight.name: to_numpy(weight.get()) for weight in leaves(module)}


def record(module, call, *inputs):
    """Call a module: what it returns, and its steps in an order jit keeps."""
    with tracing(paths(module)) as trace:
        returned = call(module, *inputs)
    return returned, collections.OrderedDict(trace.values)


def record_compiled(module, call, *inputs):
    """``record`` under jit, compiled again so that patched code counts."""
    graph, state = nnx.split(module)

    @jax.jit
    def compute(state, *inputs):
        traced = nnx.merge(graph, state)  # nnx: a new object, with new ids
        return record(traced, call, *inputs)

    return compute(state, *inputs)


def recorded(module, call, inputs, compiled):
    """What a call on arrays returns, eager or compiled, and its steps."""
    inputs = [to_native(value, home(module)) for value in inputs]
    with evaluating(module):
        returned, steps = (record_compiled if compiled else record)(
            module, call, *inputs)
    return returned, {name: to_numpy(value) for name, value in steps.items()}


def call(module, *inputs, method="__call__", compiled=False, **keywords):
    """Run a module on arrays: what it returns, and every step by name."""

    def call(module, *inputs):
        return getattr(module, method)(*inputs, **keywords)

    returned, steps = recorded(module, call, inputs, compiled)
    return to_numpy(returned), steps


def run(module, *inputs, **keywords):
    """Run a module on arrays; return every step by name."""
    return call(module, *inputs, **keywords)[1]


def run_residual(residual, x, y, compiled=False):
    """Run a residual around a sub-layer that makes y of x; as ``run``."""

    def call(residual, x, y):
        if hasattr(residual, "before"):
            residual.before(x)
        residual(x, y)

    return recorded(residual, call, (x, y), compiled)[1]


def drawn(model, source, target, key):
    """The values that dropout keeps in a run with a key; all if None."""
    if key is None:
        return {}
    shapes = places(model.config, *source.shape, target.shape[1])
    return draw(to_native(key, home(model)), shapes,
                model.config.dropout, False)


def forward(model, source, target, source_mask, target_mask, key=None):
    """Check a Transformer's inputs, run it, return every step by name."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with dropping(paths(model), drawn(model, source, target, key)):
        return run(model, *inputs)


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss and its gradient by everything; see the reference's engine.

    A step's gradient is that of a zero which is added to it.
    """
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    *inputs, labels = (to_native(a, home(model)) for a in (*inputs, labels))
    with evaluating(model):
        return found_gradients(
            model, inputs, labels, drawn(model, source, target, key))


def found_gradients(model, inputs, labels, keep):
    """What ``gradients`` returns, of native arrays and what dropout keeps."""
    graph, weights, rest = nnx.split(model, nnx.Param, ...)

    def loss_of(weights, zeros):
        traced = nnx.merge(graph, weights, rest)
        where = paths(traced)
        with (tracing(where, lambda name, value: value + zeros[name]),
              dropping(where, keep)):
            output = traced(*inputs)
        return cross_entropy(output, labels, traced.config.pad_id,
                             traced.config.label_smoothing,
                             traced.config.smoothing)

    zeros = jax.tree.map(
        jnp.zeros_like, dict(record(model, type(model).__call__, *inputs)[1]))
    loss, (by_weight, by_step) = jax.value_and_grad(
        loss_of, argnums=(0, 1))(weights, zeros)
    return to_numpy(loss), {
        **export(nnx.merge(graph, by_weight, rest)),
        **{name: to_numpy(by_step[name]) for name in zeros}}


def initial_weights(config, seed):
    """Initial weights for training, drawn here: float64, by name."""
    return transformer_contract.weights.initial_weights(config, seed, random)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def train_step(trainer, sources, targets):
    """Make one step on A batches; see the reference's engine."""
    check_pairs(trainer.model.config, sources, targets)
    loss, norm, learning_rate = trainer.train_step(*(
        to_native(ids, home(trainer.model)) for ids in (sources, targets)))
    return {"loss": to_numpy(loss), "norm": to_numpy(norm),
            "rate": np.asarray(learning_rate)}


def moments(trainer):
    """Both of Adam's moments of every weight: {"m.NAME" and "v.NAME"}."""
    return {f"{kind}.{weight.name}": to_numpy(array)
            for kind, arrays in (("m", trainer.m), ("v", trainer.v))
            for weight, array in zip(leaves(trainer.model), arrays)}


def resume(trainer, step, moments):
    """Have a Trainer go on after ``step``, from moments as exported."""
    trainer.step = step
    for kind, arrays in (("m", trainer.m), ("v", trainer.v)):
        for i, weight in enumerate(leaves(trainer.model)):
            arrays[i] = to_native(
                moments[f"{kind}.{weight.name}"], home(trainer.model))


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with evaluating(model):
        return to_numpy(model(*(to_native(x, home(model)) for x in inputs)))


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the reference's engine."""
    rows = check_search(model.config, source, settings, rows)
    # Scores are float64, the model's dtype or not.
    with evaluating(model), jax.enable_x64(True):
        tokens, scores = parts.search(model.config, settings)(
            model, to_native(np.asarray(source, np.int64), home(model)),
            settings, rows).run()
        return {"tokens": to_numpy(tokens), "scores": to_numpy(scores)}


def masks(source, target, pad_id, device="cpu", begun=True):
    """source_mask [B 1 1 S] and target_mask [B 1 T T], of ids; see masks.py."""
    source, target = to_native(source, device), to_native(target, device)
    return {
        "source_mask": to_numpy(padding_mask(source, pad_id)),
        "target_mask": to_numpy(parts.part(parts.DECODER_MASKS, begun)(
            target, pad_id)),
    }


def loss(logits, labels, pad_id, label_smoothing, smoothing, device="cpu"):
    """The mean cross-entropy of arrays, as an array."""
    return to_numpy(cross_entropy(
        to_native(logits, device), to_native(labels, device), pad_id,
        label_smoothing, smoothing))


def matmul(a, b, device="cpu"):
    """a @ b as the models compute it, for the precision canary."""
    return to_numpy(to_native(a, device) @ to_native(b, device))
