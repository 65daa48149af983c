"""A model is looked into without being changed, and stored without loss."""

import json

import numpy as np
import pytest

from contract.errors import InputError
from parity import ports
from parity.check import cases, golden
from parity.tracing.folder import dump, load
from parity.tracing.trace import TAP, WHOLE, framework_of, trace
from parity_tests.support.engines import usable

X = np.random.default_rng(1).normal(size=(3, 5, 6))
C = np.random.default_rng(2).normal(size=(3, 5, 6))


def torch_model():
    """A model that calls a module twice and holds a list and a dict."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(6, 4), nn.Linear(4, 6)])
            self.by_name = nn.ModuleDict({"norm": nn.LayerNorm(6)})
            self.drop = nn.Dropout(0.5)
            self.unused = nn.Linear(2, 2)

        def forward(self, x, mask=None, *, scale=1.0):
            for _ in range(2):
                x = x + self.layers[1](torch.relu(self.layers[0](x)))
            return {"y": self.drop(self.by_name["norm"](x)) * scale,
                    "n": None, "shape": (x.shape[0], x > 0)}

    torch.manual_seed(0)
    return Model().double().eval()


def jax_model():
    """The same in NNX."""
    import jax.numpy as jnp
    from flax import nnx
    kind = {"param_dtype": jnp.float64, "rngs": nnx.Rngs(0)}

    class Model(nnx.Module):
        def __init__(self):
            self.layers = nnx.List([nnx.Linear(6, 4, **kind),
                                    nnx.Linear(4, 6, **kind)])
            self.by_name = nnx.Dict(norm=nnx.LayerNorm(6, **kind))
            self.drop = nnx.Dropout(0.5, deterministic=True)
            self.unused = nnx.Linear(2, 2, **kind)

        def __call__(self, x, mask=None, *, scale=1.0):
            for _ in range(2):
                x = x + self.layers[1](nnx.relu(self.layers[0](x)))
            return {"y": self.drop(self.by_name["norm"](x)) * scale,
                    "n": None, "shape": (x.shape[0], x > 0)}
    return Model()


def keras_model():
    """The same in Keras."""
    import keras
    from keras import layers, ops

    class Model(keras.layers.Layer):
        def __init__(self):
            super().__init__(dtype="float64")
            kind = {"dtype": "float64"}
            self.layers = [layers.Dense(4, **kind), layers.Dense(6, **kind)]
            self.by_name = {"norm": layers.LayerNormalization(**kind)}
            self.drop = layers.Dropout(0.5, **kind)
            self.unused = layers.Dense(2, **kind)

        def call(self, x, mask=None, *, scale=1.0):
            for _ in range(2):
                x = x + self.layers[1](ops.relu(self.layers[0](x)))
            return {"y": self.drop(self.by_name["norm"](x)) * scale,
                    "n": None, "shape": (x.shape[0], x > 0)}
    keras.utils.set_random_seed(0)
    model = Model()
    model(ops.convert_to_tensor(X), scale=2.0)
    return model


MODELS = {"torch": torch_model, "keras": keras_model, "jax": jax_model}

#: What every one of the three does, in order.
ORDER = ["layers.0", "layers.1", "layers.0#2", "layers.1#2", "by_name.norm",
         "drop", WHOLE]


def total(port, output):
    """A loss whose gradient by the output is C."""
    weighted = output["y"] * port.to_native(C, "cpu")
    if port.NAME == "keras":
        from keras import ops
        return ops.sum(weighted)
    return weighted.sum()


@pytest.fixture(params=MODELS)
def made(request):
    """An engine, a model and its input."""
    if request.param not in ports.known_ports():
        pytest.skip(f"not checked: no port {request.param}")
    port = usable(request.param)
    return port, MODELS[request.param](), port.to_native(X, "cpu")


def test_every_number_is_what_it_is_untraced(made):
    port, model, x = made
    before = port.to_numpy(model(x, scale=2.0)["y"])
    found = trace(model, x, scale=2.0)
    graded = trace(model, x, scale=2.0,
                   gradients=lambda output: total(port, output))
    after = port.to_numpy(model(x, scale=2.0)["y"])
    for y in (found.step(WHOLE).outputs["output.y"],
              graded.step(WHOLE).outputs["output.y"], after):
        assert y.dtype == before.dtype and y.tobytes() == before.tobytes()


def test_every_call_by_path_in_order(made):
    port, model, x = made
    found = trace(model, x, scale=2.0)
    assert [step.path for step in found.steps] == ORDER
    assert found.framework == port.NAME == framework_of(model)
    assert found.dtype == "float64" and found.live
    assert found.versions == port.versions() and found.precision
    assert found.never_called == ["unused"] and not found.notes
    whole, twice = found.step(WHOLE), found.step("layers.0#2")
    assert twice.module == "layers.0" and twice.kind in ("Linear", "Dense")
    assert sorted(twice.parameters) == sorted(found.step(
        "layers.0").parameters) and len(twice.parameters) == 2
    assert whole.inputs.keys() == {"x"}
    assert whole.inputs["x"].tobytes() == X.tobytes()
    assert whole.others == {
        "inputs.scale": "2.0", "outputs.output.n": "None",
        "outputs.output.shape.0": "3"}
    assert whole.outputs["output.shape.1"].dtype == bool
    assert whole.began < min(step.began for step in found.steps[:-1])
    assert "epsilon" in found.step("by_name.norm").settings or (
        "eps" in found.step("by_name.norm").settings)


def test_what_is_kept_is_a_copy(made):
    port, model, x = made
    found = trace(model, x)
    arrays = [*found.parameters.values(), *(
        array for step in found.steps for array in step.outputs.values())]
    assert arrays and not any(a.flags.writeable for a in arrays)
    if port.NAME == "torch":
        import torch
        with torch.no_grad():
            model.layers[0].weight.fill_(7)
        assert (found.parameters["layers.0.weight"] != 7).all()


def test_gradients_are_the_frameworks_own(made):
    """By finite differences of one parameter, and by C at the end."""
    port, model, x = made
    found = trace(model, x, gradients=lambda output: total(port, output))
    used = {path for path in found.trainable if "unused" not in path}
    assert len(used) == 6
    assert used <= set(found.gradients) <= set(found.trainable)
    np.testing.assert_array_equal(
        found.step(WHOLE).gradients["output.y"], C)
    np.testing.assert_allclose(  # the dropout is at rest
        found.step("by_name.norm").gradients["output"], C, rtol=1e-15)
    for path in ORDER[:-1]:
        assert list(found.step(path).gradients) == ["output"], path
    # A residual branch's own gradient is not the sum's: the second block's
    # output bias sees the gradient by that block's output alone.
    weights = next(p for p in found.parameters if p.startswith("layers.1")
                   and p.endswith("bias"))
    both = sum(found.step(path).gradients["output"].sum(axis=(0, 1))
               for path in ("layers.1", "layers.1#2"))
    np.testing.assert_allclose(found.gradients[weights], both, rtol=1e-12)
    y = port.to_numpy(model(x)["y"])
    assert abs(found.loss - (y * C).sum()) < 1e-12


@pytest.mark.parametrize("loss", [
    lambda output: output["y"], lambda output: "text"])
def test_a_loss_that_is_none(made, loss):
    _, model, x = made
    with pytest.raises(InputError, match="must return a scalar loss"):
        trace(model, x, gradients=loss)
    with pytest.raises(InputError, match="must be a function"):
        trace(model, x, gradients=True)


def test_a_step_can_be_run_again(made):
    _, model, x = made
    found = trace(model, x, scale=2.0)
    for step in found.steps:
        again = found.rerun(step.path, {})
        assert again.keys() == step.outputs.keys()
        for name, array in step.outputs.items():
            assert again[name].tobytes() == array.tobytes()
    name = next(iter(found.step("layers.0").inputs))
    again = found.rerun("layers.0", {name: 0 * X})["output"]
    assert (again == again[0, 0]).all() and again.shape == (3, 5, 4)
    with pytest.raises(InputError, match="no step 'nowhere'"):
        found.rerun("nowhere", {})
    with pytest.raises(InputError, match="no array 'other'"):
        found.rerun("layers.0", {"other": X})
    with pytest.raises(InputError, match=r"\[1, 5, 6\] where \[3, 5, 6\]"):
        found.rerun("layers.0", {name: X[:1]})


def hooked(port):
    """What a trace replaces."""
    if port.NAME == "keras":
        import keras
        return keras.layers.Layer.__call__
    if port.NAME == "torch":
        import torch
        return torch.nn.Module.__call__
    from flax import nnx
    return nnx.Linear.__call__, "__call__" in vars(nnx.Linear)


def test_nothing_stays_hooked_when_a_model_raises(made):
    port, model, x = made
    before = hooked(port)
    kinds = {type(model): dict(vars(type(model)))}
    with pytest.raises(Exception, match=".+") as raised:
        trace(model, x[..., :5])
    assert not isinstance(raised.value, InputError)
    assert hooked(port) == before
    for kind, attributes in kinds.items():
        assert dict(vars(kind)).keys() == attributes.keys()
    trace(model, x)
    assert hooked(port) == before


def test_what_is_no_model():
    with pytest.raises(InputError, match="a list is no model"):
        trace([1], X)


# One framework's own ways

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


# Dumps

@pytest.fixture
def dumped(tmp_path):
    """A trace with gradients, and where it was dumped."""
    port = usable("torch")
    model = torch_model()
    found = trace(model, port.to_native(X, "cpu"),
                  gradients=lambda output: total(port, output))
    dump(found, tmp_path / "d")
    return found, tmp_path / "d"


def test_a_dump_is_the_trace(dumped):
    found, folder = dumped
    again = load(folder)
    assert not again.live and again.origin == str(folder)
    for field in ("framework", "versions", "precision", "dtype", "trainable",
                  "aliases", "loss", "never_called", "notes", "inputs_hash",
                  "parameters_hash", "content_hash"):
        assert getattr(again, field) == getattr(found, field), field
    for mine, other in zip(again.steps, found.steps, strict=True):
        for field in ("path", "module", "kind", "source", "began", "ended",
                      "others", "parameters", "settings"):
            assert getattr(mine, field) == getattr(other, field), field
        for field in ("inputs", "outputs", "gradients"):
            for name, array in getattr(other, field).items():
                read = getattr(mine, field)[name]
                assert read.shape == array.shape
                assert read.dtype == array.dtype
                assert read.tobytes() == array.tobytes()
    with pytest.raises(InputError, match="read from a file"):
        again.rerun("layers.0", {})
    with pytest.raises(InputError, match="holds something already"):
        dump(found, folder)


def test_odd_arrays_survive(tmp_path):
    """Scalars, empty ones, and dtypes that the file format lacks."""
    usable("torch")
    import torch

    class Odd(torch.nn.Module):
        def forward(self, x):
            return (x.sum(), x[:0], x.T, torch.complex(x, x).to(
                torch.complex128), x > 0, x.to(torch.uint8))
    found = trace(Odd(), torch.ones(2, 3))
    dump(found, tmp_path / "d")
    again = load(tmp_path / "d").steps[-1].outputs
    for name, array in found.steps[-1].outputs.items():
        assert again[name].dtype == array.dtype
        assert again[name].shape == array.shape
        assert again[name].tobytes() == array.tobytes()


def spoil(folder, how):
    """Damage a dump."""
    manifest, arrays = folder / "manifest.json", folder / "arrays.safetensors"
    match how:
        case "no manifest":
            manifest.unlink()
        case "no arrays":
            arrays.unlink()
        case "cut manifest":
            manifest.write_text(manifest.read_text()[:-40])
        case "edited manifest":
            manifest.write_text(manifest.read_text().replace(
                '"LayerNorm"', '"RMSNorm"'))
        case "cut arrays":
            arrays.write_bytes(arrays.read_bytes()[:-40])
        case "one bit":
            data = bytearray(arrays.read_bytes())
            data[-5] ^= 1
            arrays.write_bytes(bytes(data))
        case "schema":
            data = json.loads(manifest.read_text())
            manifest.write_text(json.dumps(data | {"schema": 99}))
        case "a list":
            manifest.write_text("[]")


@pytest.mark.parametrize("how", [
    "no manifest", "no arrays", "cut manifest", "edited manifest",
    "cut arrays", "one bit", "schema", "a list"])
def test_a_damaged_dump_is_refused(dumped, how):
    _, folder = dumped
    spoil(folder, how)
    with pytest.raises(InputError) as told:
        load(folder)
    assert str(folder) in str(told.value) and "\n" not in str(told.value)


def test_arrays_of_another_dump_are_refused(dumped, tmp_path):
    found, folder = dumped
    other = trace(torch_model(), 2 * usable("torch").to_native(X, "cpu"))
    dump(other, tmp_path / "e")
    name = "arrays.safetensors"
    (folder / name).write_bytes((tmp_path / "e" / name).read_bytes())
    with pytest.raises(InputError, match="another dump's"):
        load(folder)


def test_a_dump_that_fails_leaves_nothing(dumped, tmp_path, monkeypatch):
    found, _ = dumped
    from parity.tracing import folder

    def fails(*_):
        raise OSError("the disk is full")
    monkeypatch.setattr(folder.weights, "save", fails)
    with pytest.raises(InputError, match="the disk is full"):
        dump(found, tmp_path / "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d"]
