"""The reference beside a framework's own layers."""

import numpy as np
import pytest

from transformer_contract import weights
from transformer_contract.components import WHOLE
from parity import ports
from parity.check import cases, golden
from parity.numerics.comparator import MATCH, compare, relative_error
from parity.numerics.tolerances import FLOAT64_LIMIT

CONFIG = cases.test_size("practical")
D, HEADS, D_K = CONFIG.d_model, CONFIG.n_heads, CONFIG.d_k
WEIGHTS = golden.shipped("practical")
BATCH = cases.padded_batch(CONFIG)
X = cases.values("x", cases.BATCH, cases.TARGET, D)
MEMORY = cases.values("memory", cases.BATCH, cases.SOURCE, D)
ATTENTION = weights.select(WEIGHTS, "encoder.layers.0.self_attention.")
PROJECTIONS = ("query", "key", "value", "output")

#: The pair whose source is padding alone, and all the others.
EMPTY = 3
OTHERS = [i for i in range(cases.BATCH) if i != EMPTY]

#: Rows of deviation 0.02 about 0, where epsilon is a part of the variance.
NARROW = 0.02 * X / X.std(axis=-1, keepdims=True)

torch_only = pytest.mark.parametrize("port", ["torch"], indirect=True)
keras_only = pytest.mark.parametrize("port", ["keras"], indirect=True)
jax_only = pytest.mark.parametrize("port", ["jax"], indirect=True)


def reference(component, *inputs, config=CONFIG, arrays=ATTENTION):
    """The steps of a component of the reference."""
    engine = ports.engine("numpy")
    return engine.run(engine.build(component, config, arrays), *inputs,
                      **WHOLE.get(component, {}))


def equal(found, truth, limit=FLOAT64_LIMIT):
    """Whether an array is the truth at float64's limit; shows what is not."""
    difference = compare(np.asarray(found), truth, limit)
    assert difference.verdict == MATCH, difference
    return True


def gap(found, truth):
    """How far an array is off, as the comparator measures it."""
    found = np.asarray(found)
    assert found.shape == truth.shape
    return relative_error(found, truth)[0]


def on_tensorflow():
    """Skip what is true of Keras on TensorFlow only."""
    import keras
    if keras.backend.backend() != "tensorflow":
        pytest.skip("not checked: Keras does not run on TensorFlow here")


def torch_mask(mask, queries):
    """Our mask as nn.MultiheadAttention's: [B·H T S], True hides (R1)."""
    import torch
    wide = np.broadcast_to(
        mask, (cases.BATCH, HEADS, queries, mask.shape[-1]))
    return torch.from_numpy(~wide.reshape(-1, *wide.shape[2:]))


def load_torch_attention(module, arrays):
    """Our arrays into nn.MultiheadAttention's packed ones."""
    import torch
    packed = {
        "in_proj_weight": np.concatenate(
            [arrays[f"{name}.kernel"].T for name in PROJECTIONS[:3]]),
        "in_proj_bias": np.concatenate(
            [arrays[f"{name}.bias"] for name in PROJECTIONS[:3]]),
        "out_proj.weight": arrays["output.kernel"].T.copy(),
        "out_proj.bias": arrays["output.bias"],
    }
    module.load_state_dict(
        {name: torch.from_numpy(array) for name, array in packed.items()})
