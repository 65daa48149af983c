"""The reference's one face to the harness: the same functions as a port's."""

import numpy as np

import transformer_contract.weights
from transformer_contract.batch import check_inputs, check_pairs, check_search
from transformer_contract import components
from transformer_contract.dropping import dropping, places
from transformer_contract.weights import check
from reference_numpy import parts, random
from reference_numpy.dropout import draw
from reference_numpy.loss import cross_entropy, cross_entropy_backward
from reference_numpy.masks import padding_mask
from reference_numpy.parameters import flatten, leaves, modules, paths
from reference_numpy.train import Trainer

NAME = "numpy"


def versions():
    """What computes here, by name."""
    return {"numpy": np.__version__}


def set_precision():
    """Nothing to set: NumPy computes in the dtype of its inputs."""
    return {}


def devices():
    """The devices that a real computation ran on."""
    return ["cpu"]


def to_native(value, device):
    """A value as it is: NumPy's arrays are the harness' own."""
    return value


def to_numpy(array):
    """An array as it is."""
    return array


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component and load its weights.

    Args:
        component: a key of transformer_contract.components.COMPONENTS.
        config: a TransformerConfig.
        weights: the component's arrays by canonical name.
        dtype: what to compute in.
        device: "cpu".

    Raises:
        InputError: an array is missing, surplus, misshapen or not finite.
    """
    make, arguments = components.component(
        __package__, component, config)
    drawn = np.random.get_state()
    module = make(*arguments)
    np.random.set_state(drawn)  # what it has drawn is not kept
    for _, below in modules(module):
        below.home = device
    check(weights, {
        weight.name: weight.get().shape for weight in leaves(module)})
    for weight in leaves(module):
        weight.set(weights[weight.name].astype(dtype, copy=False))
    return module


def export(module):
    """The weights under their canonical names, as arrays."""
    return {weight.name: weight.get().copy() for weight in leaves(module)}


def call(module, *inputs, method="forward", **keywords):
    """Run a module on arrays: what it returns, and every step by name.

    ``keywords`` are what the method takes besides arrays.
    """
    returned, cache = getattr(module, method)(*inputs, **keywords)
    return returned, flatten(cache)


def run(module, *inputs, **keywords):
    """Run a module on arrays; return every step by name."""
    return call(module, *inputs, **keywords)[1]


def run_residual(residual, x, y):
    """Run a residual around a sub-layer that makes y of x; as ``run``."""
    before = {}
    if hasattr(residual, "before"):
        _, before = residual.before(x)
    _, cache = residual.forward(x, y)
    return flatten(before | cache)


def forward(model, source, target, source_mask, target_mask, key=None):
    """Check a Transformer's inputs, run it, return every step by name.

    With a key, two uint32, values are dropped as while training.
    """
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with dropping(paths(model), drawn(model, source, target, key)):
        return run(model, *inputs)


def drawn(model, source, target, key):
    """The values that dropout keeps in a run with a key; all if None."""
    if key is None:
        return {}
    shapes = places(model.config, *source.shape, target.shape[1])
    return draw(key, shapes, model.config.dropout, False)


def gradients(model, source, target, source_mask, target_mask, labels,
              key=None):
    """The loss of a batch, and its gradient by every weight and step.

    Args:
        model: a Transformer.
        source, target, source_mask, target_mask: as ``forward`` takes them.
        labels: int [B T], what each target position should predict.
        key: two uint32, to drop values as while training.

    Returns:
        The loss, a scalar array, and the gradient of every weight and of every
        step, by name.
    """
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    convention = (model.config.pad_id, model.config.label_smoothing,
                  model.config.smoothing)
    with dropping(paths(model), drawn(model, source, target, key)):
        output, cache = model.forward(*inputs)
    doutput = cross_entropy_backward(output, labels, *convention)
    return (np.asarray(cross_entropy(output, labels, *convention)),
            flatten(model.backward(doutput, cache)))


def initial_weights(config, seed):
    """Initial weights for training, drawn here: float64, by name."""
    return transformer_contract.weights.initial_weights(config, seed, random)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def train_step(trainer, sources, targets):
    """Make one step on A batches; its loss, norm and learning rate.

    Args:
        trainer: a Trainer.
        sources: int [A B S].
        targets: int [A B T], from bos to eos.

    Returns:
        "loss", the mean before the step; "norm", of the gradient before it was
        clipped; "rate", the learning rate.
    """
    check_pairs(trainer.model.config, sources, targets)
    loss, norm, learning_rate = trainer.train_step(sources, targets)
    return {"loss": np.asarray(loss), "norm": np.asarray(norm),
            "rate": np.asarray(learning_rate)}


def moments(trainer):
    """Both of Adam's moments of every weight: {"m.NAME" and "v.NAME"}."""
    return {f"{kind}.{weight.name}": array.copy()
            for kind, arrays in (("m", trainer.m), ("v", trainer.v))
            for weight, array in zip(leaves(trainer.model), arrays)}


def resume(trainer, step, moments):
    """Have a Trainer go on after ``step``, from moments as exported."""
    trainer.step = step
    for kind, arrays in (("m", trainer.m), ("v", trainer.v)):
        for i, weight in enumerate(leaves(trainer.model)):
            arrays[i] = moments[f"{kind}.{weight.name}"].astype(
                arrays[i].dtype)


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    return model.forward(*inputs)[0]


def generate(model, source, settings, rows=None):
    """Find targets of sources.

    Args:
        model: a Transformer.
        source: int [B S].
        settings: a GenerationConfig.
        rows: int [B], the number that a row's samples follow from; its place
            by default.

    Returns:
        "tokens", int64 [B W N], the best first, with their bos and, where they
        finish, their eos, then padding; N is 1 + max_tokens, and W is 1
        without a beam. "scores", float64 [B W]: log p, for a beam over the
        length rule's penalty; -∞ where a beam has fewer than W.
    """
    rows = check_search(model.config, source, settings, rows)
    tokens, scores = parts.search(model.config, settings)(
        model, np.asarray(source, np.int64), settings, rows).run()
    return {"tokens": tokens, "scores": scores}


def masks(source, target, pad_id, device="cpu", begun=True):
    """source_mask [B 1 1 S] and target_mask [B 1 T T], of ids; see masks.py."""
    return {
        "source_mask": padding_mask(source, pad_id),
        "target_mask": parts.part(parts.DECODER_MASKS, begun)(target, pad_id),
    }


def loss(logits, labels, pad_id, label_smoothing, smoothing, device="cpu"):
    """The mean cross-entropy of arrays, as an array."""
    return np.asarray(cross_entropy(
        logits, labels, pad_id, label_smoothing, smoothing))


def matmul(a, b, device="cpu"):
    """a @ b as the models compute it, for the precision canary."""
    return a @ b
