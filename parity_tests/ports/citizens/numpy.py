"""How NumPy is asked what parity_tests/ports/test_citizen.py asks."""

import copy
import pickle

import numpy as np

from transformer_contract.dropping import dropping
from transformer_contract.training import TrainingConfig
from reference_numpy import Transformer, engine, random
from reference_numpy.dropout import Dropout, native_kept
from reference_numpy.layer_norm import LayerNorm

NAME, PACKAGE, FRAMEWORK = "numpy", "reference_numpy", "import numpy"

#: What makes an array of the framework.
ARRAY = "numpy.asarray"


def new(config, seed=0):
    """A new model by NumPy's own random numbers."""
    np.random.seed(seed)
    return Transformer(config)


def ids(array):
    """Whole numbers as they are."""
    return np.asarray(array)


def numpy(array):
    """An array as it is."""
    return array


def logits(model, source, target, training=False, **masks):
    """What a model answers, dropping if it trains."""
    model.training = training
    return model(source, target, **masks)


def dropped(array, rate):
    """What is left of an array in training."""
    part = Dropout(rate)
    mask = native_kept(random.key(0), array.shape, rate)
    with dropping({id(part): "part"}, {"part": mask}):
        return part.forward(array)[0].astype(array.dtype)


def native_round_trip(model, config, path):
    """New models that have read what NumPy has written."""
    np.savez(path / "weights.npz", **engine.export(model))
    with np.load(path / "weights.npz") as arrays:
        return {"npz": engine.build(
            "transformer", config, dict(arrays), "float64")}


def native_refusals(model, other_config, path):
    """What must not be read: another model's arrays, a cut file, a renamed
    one."""
    arrays, file = engine.export(model), path / "weights.npz"
    np.savez(file, **arrays)
    cut = path / "cut.npz"
    cut.write_bytes(file.read_bytes()[:-1000])
    (first, array), *others = arrays.items()

    def build(config, arrays):
        return engine.build("transformer", config, arrays)

    return {
        "another config": lambda: build(other_config, arrays),
        "a cut file": lambda: build(model.config, dict(np.load(cut))),
        "a renamed array": lambda: build(
            model.config, {f"{first}x": array, **dict(others)})}


def copies(model):
    """Copies in each way that Python has."""
    return {"deepcopy": copy.deepcopy(model),
            "pickle": pickle.loads(pickle.dumps(model))}


def compiled(model):
    """NumPy compiles nothing."""
    return {}


def loop(model, batches):
    """The reference's own trainer: NumPy has no optimiser."""
    trainer = engine.trainer(model, TrainingConfig(
        schedule="constant", learning_rate=3e-3))
    for source, target, labels in batches:
        whole = np.concatenate([target, labels[:, -1:]], axis=1)
        yield float(engine.train_step(
            trainer, source[None], whole[None])["loss"])


class Gained(LayerNorm):
    """A norm with one weight more."""

    def __init__(self, d_model, eps):
        super().__init__(d_model, eps)
        self.gain = np.ones(d_model)

    def forward(self, x):
        """Normalise x [B T D] over D, then multiply."""
        output, c = super().forward(x)
        c["ungained"] = output
        return output * self.gain, c

    def backward(self, doutput, c):
        """From doutput: dx and g."""
        dx, g = super().backward(doutput * self.gain, c)
        g["gain"] = np.sum(doutput * c["ungained"], axis=(0, 1))
        return dx, g
