"""A conversion for each family: other libraries' models into our ports."""

import numpy as np
import pytest

from transformer_contract.dialects.table import SYSTEMS
from transformer_contract.weights import initial_weights
from parity import ports
from parity_tests.originals import random_models
from parity_tests.originals.proof import random_state
from parity_tests.originals.run import ORIGINALS, SEARCHED, original
from parity_tests.harness.conversion.models import X, Multi
from parity_tests.harness.conversion.test_find import agrees
from parity_tests.support.engines import usable


def made(name):
    """Hugging Face's model of a dialect and our torch port's."""
    import torch
    kind = original(name, {**SEARCHED, **ORIGINALS})
    if isinstance(kind, str):
        pytest.skip(f"not checked: {kind}")
    dialect = kind.provable(SYSTEMS[name])
    described = random_models.described(dialect, 0, **kind.DRAWN)
    theirs = kind(dialect, described)
    theirs.load(random_state(dialect, theirs, 0))
    config = dialect.config(described, theirs.arrays())
    draw = np.random.default_rng(5)

    def ids(vocab, length):
        tokens = draw.integers(0, vocab - 1, (2, length))
        return torch.from_numpy(tokens + (tokens >= config.pad_id))
    source, target = ids(config.source_vocab, 6), ids(config.target_vocab, 5)
    frames = described.get("max_source_positions", 6)
    mask = torch.ones(2, 1, 1, frames, dtype=torch.bool)
    later = torch.ones(5, 5, dtype=torch.bool).tril().expand(2, 1, 5, 5)
    given, inputs = {
        "encoder": ({"input_ids": source}, (source, None, mask, None)),
        "decoder": ({"input_ids": target, "use_cache": False},
                    (None, target, None, later)),
        "both": ({"input_ids": source, "decoder_input_ids": target,
                  "use_cache": False}, (source, target, mask, later))}[
                      config.stacks]
    if config.token_types:
        given["token_type_ids"] = torch.zeros_like(source)
    ours = ports.engine("torch").build(
        "transformer", config, initial_weights(config))
    return (theirs.model, (), given), (ours, inputs, {})


@pytest.mark.long
@pytest.mark.parametrize("name", [
    "bert", "gpt2", "llama", "t5", "bart", "hf_marian"])
def test_into_ours_and_back(name):
    theirs, ours = made(name)
    agrees(theirs, ours)


@pytest.mark.long
def test_whisper_into_two_convolutions_before_ours_and_back():
    (model, *_), (port, (_, target, mask, later), _) = made("whisper")
    import torch
    from torch.nn.functional import gelu

    class Hearing(torch.nn.Module):
        """Our encoder and decoder behind convolutions."""

        def __init__(self):
            super().__init__()
            del port.source_embedding  # a table of frames
            width, port_width = model.config.num_mel_bins, port.config.d_model
            self.first = torch.nn.Conv1d(width, port_width, 3, padding=1)
            self.second = torch.nn.Conv1d(
                port_width, port_width, 3, stride=2, padding=1)
            self.port = port
            self.double()

        def forward(self, picture):
            x = gelu(self.second(gelu(self.first(picture)))).mT
            x = port.source_positions(x, x[..., 0], 0)
            return port.project(port.decode(
                target, port.encoder(x, mask), mask, later, None))
    draw = np.random.default_rng(6)
    picture = torch.from_numpy(draw.normal(size=(
        2, model.config.num_mel_bins, 2 * model.config.max_source_positions)))
    agrees((model, (), {"input_features": picture, "use_cache": False,
                        "decoder_input_ids": target}),
           (Hearing(), (picture,), {}))


def attention(name):
    """PyTorch's attention under a name, between two other layers."""
    import torch

    class Around(torch.nn.Module):
        """A norm behind it, and a projection behind that."""

        def __init__(self):
            super().__init__()
            setattr(self, name, Multi())
            self.norm, self.last = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)
            self.double().eval()

        def forward(self, x):
            x = self.norm(x + getattr(self, name)(x))
            return x + self.last(x)
    return Around(), (torch.from_numpy(X),), {}


def nnx_attention(name):
    """The same in Flax NNX."""
    usable("jax")
    import jax.numpy as jnp
    from flax import nnx
    made = {"param_dtype": jnp.float64, "dtype": jnp.float64,
            "rngs": nnx.Rngs(0)}

    class Around(nnx.Module):
        """The same."""

        def __init__(self):
            setattr(self, name, nnx.MultiHeadAttention(
                2, 8, decode=False, **made))
            self.behind = nnx.LayerNorm(8, epsilon=1e-5, **made)
            self.kernel = nnx.Linear(8, 8, **made)

        def __call__(self, x):
            x = self.behind(x + getattr(self, name)(x))
            return x + self.kernel(x)
    return Around(), (jnp.asarray(X),), {}


@pytest.mark.long
@pytest.mark.parametrize("name, other", [
    ("attn", "attn"), ("self_attn", "attention"), ("x", "mha")])
def test_attention_into_nnx_and_back_under_any_name(name, other):
    agrees(attention(name), nnx_attention(other))
    agrees(nnx_attention(other), attention(name))


def test_a_layer_into_keras_and_back():
    """Keras builds a layer by a call, which is no call of the model's."""
    usable("keras")
    import keras
    import torch

    class Ours(torch.nn.Module):
        """A norm and two maps."""

        def __init__(self):
            super().__init__()
            self.norm, self.first = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)
            self.second = torch.nn.Linear(8, 8)
            self.double().eval()

        def forward(self, x):
            return x + self.second(torch.relu(self.first(self.norm(x))))

    class Theirs(keras.layers.Layer):
        """The same, without a build()."""

        def __init__(self):
            super().__init__(dtype="float64")
            self.scaled = keras.layers.LayerNormalization(
                epsilon=1e-5, dtype="float64")
            self.inner = keras.layers.Dense(8, "relu", dtype="float64")
            self.outer = keras.layers.Dense(8, dtype="float64")

        def call(self, x):
            return x + self.outer(self.inner(self.scaled(x)))

    theirs = Theirs()
    theirs(X)
    agrees((Ours(), (torch.from_numpy(X),), {}), (theirs, (X,), {}))
