"""What one framework alone does, and a trace must bear."""

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.check import cases, golden
from parity.tracing.folder import dump, load
from parity.tracing.trace import TAP, WHOLE, trace
from parity_tests.support.engines import usable
from parity_tests.support.models import X


def test_torch_keeps_to_its_fast_path():
    """A hook would have made it take the slow one: other numbers."""
    usable("torch")
    import torch
    layer = torch.nn.TransformerEncoderLayer(
        12, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 4, 12)
    mask = torch.tensor([[False] * 4, [True] * 4])  # a row of padding alone
    with torch.no_grad():
        plain = layer(x, src_key_padding_mask=mask).numpy()
        found = trace(layer, x, src_key_padding_mask=mask)
    assert found.steps[-1].outputs["output"].tobytes() == plain.tobytes()
    assert [step.path for step in found.steps] == [WHOLE]
    assert "norm1" in found.never_called
    assert len(trace(layer, x).steps) > 5


def test_torch_in_place_and_shared():
    """A value is kept as it was when it was handed on; twins are aliases."""
    usable("torch")
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 4)
            self.outer.weight = self.inner.weight
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            h = self.inner(x)
            h.clamp_(min=0)
            return self.outer(h)

    model = Model()
    found = trace(model, torch.randn(9, 4),
                  gradients=lambda output: output.square().mean())
    inner = found.step("inner")
    assert (inner.outputs["output"] < 0).any()
    assert (found.step("outer").inputs["input"] >= 0).all()
    assert found.aliases == {"outer.weight": "inner.weight"}
    assert "outer.weight" not in found.parameters
    assert (inner.gradients["output"][inner.outputs["output"] < 0] == 0).all()
    assert model.count == 0 and found.parameters["count"] == 0
    assert all(p.grad is None for p in model.parameters())


def test_torch_training_leaves_no_mark():
    """Averages, the random state and the mode are as they were."""
    usable("torch")
    import torch
    model = torch.nn.Sequential(
        torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5)).train()
    x = torch.randn(8, 4)
    state = torch.get_rng_state()
    expected = model(x).detach().clone()
    torch.set_rng_state(state)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    found = trace(model, x)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert model.training and torch.equal(torch.get_rng_state(), state)
    assert found.steps[-1].outputs["output"].tobytes() == (
        expected.numpy().tobytes())
    assert "training mode" in found.notes[0]
    again = found.rerun("0", {})["output"]
    assert again.tobytes() == found.step("0").outputs["output"].tobytes()
    assert model.state_dict()["0.num_batches_tracked"] == before[
        "0.num_batches_tracked"]


def test_nnx_training_leaves_no_mark():
    usable("jax")
    import jax.numpy as jnp
    from flax import nnx
    rngs = nnx.Rngs(0)
    model = nnx.Sequential(nnx.BatchNorm(4, rngs=rngs),
                           nnx.Dropout(0.5, rngs=rngs))
    x = jnp.ones((8, 4)) * jnp.arange(8.0)[:, None]
    found = trace(model, x, gradients=lambda output: (output ** 2).sum())
    assert (found.parameters["layers.0.mean"] == 0).all()
    assert (model.layers[0].mean.get_value() == 0).all()
    assert not any("rngs" in path for path in found.parameters)
    assert "drops" in found.notes[0]
    output = model(x)  # the same draw again, as if there had been no trace
    np.testing.assert_array_equal(output, found.steps[-1].outputs["output"])


def test_nnx_compiled_parts_are_noted():
    usable("jax")
    import jax.numpy as jnp
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self):
            self.inner = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
            self.outer = nnx.Linear(4, 4, rngs=nnx.Rngs(1))

        def __call__(self, x):
            return self.outer(nnx.jit(lambda m, x: m(x))(self.inner, x))

    found = trace(Model(), jnp.ones((2, 4)),
                  gradients=lambda output: output.sum())
    assert [step.path for step in found.steps] == ["outer", WHOLE]
    assert found.never_called == ["inner"]
    assert set(found.gradients) >= {"inner.kernel", "outer.kernel"}


def test_nnx_a_class_and_its_base():
    """What a class inherits, or calls of its base's, is one step."""
    usable("jax")
    import jax.numpy as jnp
    from flax import nnx

    class Base(nnx.Module):
        def __call__(self, x):
            return x + 1

    class Heir(Base):
        pass

    class Caller(Base):
        def __call__(self, x):
            return 2 * super().__call__(x)

    class Model(nnx.Module):
        def __init__(self):
            self.base, self.heir, self.caller = Base(), Heir(), Caller()

        def __call__(self, x):
            return self.caller(self.heir(self.base(x)))

    found = trace(Model(), jnp.zeros(3))
    assert [step.path for step in found.steps] == [
        "base", "heir", "caller", WHOLE]
    assert found.steps[-1].outputs["output"].tolist() == [6, 6, 6]
    assert "__call__" not in vars(Heir)


def test_keras_unbuilt_and_functional():
    """What a first call builds is seen; symbolic calls are not."""
    usable("keras")
    import keras
    from keras import layers
    model = keras.Sequential([layers.Dense(4), layers.Dense(3, name="last")])
    x = np.ones((2, 5), np.float32)
    found = trace(model, x)
    assert [step.path for step in found.steps] == [
        "layers.0", "last", WHOLE]
    assert not found.notes and len(found.parameters) == 4
    assert found.step("last").parameters == ["last.kernel", "last.bias"]
    given = keras.Input((5,))
    functional = keras.Model(given, layers.Dense(2)(layers.ReLU()(given)))
    found = trace(functional, x)
    assert [step.kind for step in found.steps] == [
        "ReLU", "Dense", "Functional"]
    attention = layers.MultiHeadAttention(2, 3)
    found = trace(attention, x[None], x[None])
    assert {"query_dense", "key_dense", "value_dense", "output_dense"} <= {
        step.path for step in found.steps}


def test_keras_weights_without_a_name():
    """The attribute's stands for Keras' own, which counts through the run."""
    usable("keras")
    import keras

    class Norm(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.weight = keras.Variable(np.ones(3, np.float32))
            self._shift = self.add_weight(shape=(3,))
            self.both = [self.add_weight(shape=(3,), name="given")]

        def call(self, x):
            return x * self.weight + self._shift + self.both[0]

    found = trace(keras.Sequential([Norm(), Norm()]),
                  np.ones((2, 3), np.float32))
    assert list(found.parameters) == [
        f"layers.{i}.{name}" for i in range(2)
        for name in ("weight", "shift", "given")]


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_bfloat16(name, tmp_path):
    port = usable(name)
    import ml_dtypes
    if name == "torch":
        import torch
        model = torch.nn.Linear(6, 4).bfloat16()
    else:
        import jax.numpy as jnp
        from flax import nnx
        model = nnx.Linear(6, 4, rngs=nnx.Rngs(0), dtype=jnp.bfloat16,
                           param_dtype=jnp.bfloat16)
    found = trace(model, port.to_native(X.astype(ml_dtypes.bfloat16), "cpu"))
    assert found.dtype == "bfloat16"
    again = found.rerun(WHOLE, {})["output"]
    assert again.tobytes() == found.step(WHOLE).outputs["output"].tobytes()
    dump(found, tmp_path / "d")
    assert load(tmp_path / "d").content_hash == found.content_hash


@pytest.mark.long(12)
def test_our_own_models_have_their_taps(port):
    """Every tap is a step, with the value that the port itself reports."""
    config = cases.test_size("lesson")
    model = port.build("transformer", config, golden.shipped("lesson"))
    batch = cases.padded_batch(config)
    truth = port.forward(model, *batch)
    found = trace(model, *(port.to_native(a, "cpu") for a in batch))
    taps = {step.path.removesuffix("()"): step.outputs["output"]
            for step in found.steps if step.source == TAP}
    assert list(taps) == list(truth)
    for name, value in truth.items():
        assert value.tobytes() == taps[name].tobytes(), name
    assert "encoder.layers.0.feed_forward.inner" in {
        step.path for step in found.steps}
    with pytest.raises(InputError, match="is a value inside"):
        found.rerun("encoder.output()", {})


def test_a_keras_model_that_builds_itself_is_recorded_once():
    """It is called twice at first, and NumPy's ids have values in both."""
    usable("keras")
    import keras

    class Built(keras.Model):
        """A table and a projection, which are made with the model."""

        def __init__(self):
            super().__init__()
            self.table = keras.layers.Embedding(5, 4)
            self.last = keras.layers.Dense(3)

        def call(self, ids):
            """Numbers for each id."""
            return self.last(self.table(ids))
    model, ids = Built(), np.array([[1, 2]])
    paths = [[step.path for step in trace(model, ids).steps] for _ in "ab"]
    assert paths == 2 * [["table", "last", WHOLE]]
