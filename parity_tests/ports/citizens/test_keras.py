"""What Keras' users do with a model, and users of no other framework."""

import numpy as np
import pytest

from parity import ports
from parity.ports import NotChecked

if isinstance(ports.engine("keras"), NotChecked):
    pytest.skip("not checked: Keras is not installed",
                allow_module_level=True)

import keras  # noqa: E402

from impl_keras import Transformer, create  # noqa: E402
from parity_tests.ports.citizens.keras import logits, new  # noqa: E402
from parity_tests.ports.test_citizen import (  # noqa: E402
    CONFIG, SHALLOW, batch, near)


def test_a_constructor_makes_all_weights():
    """A first call adds none; so there is none that a file could miss."""
    ids = batch()
    for config in (CONFIG, CONFIG.replace(
            positions="relative", residual="pre", final_norm=True,
            gated=True, n_kv_heads=3, tied="none", output_transform=True)):
        model = create(config)
        before = [variable.path for variable in model.variables]
        logits(model, ids.source, ids.target)
        assert [variable.path for variable in model.variables] == before
        held = sum(np.prod(variable.shape)
                   for variable in model.trainable_variables)
        assert held == sum(array.size for array in ports.engine(
            "keras").export(model).values())


def test_the_functional_api_with_unknown_sizes(tmp_path):
    """The model is a layer of another one, which is saved with it."""
    model, ids = new(CONFIG), batch()
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    whole = keras.Model(inputs, keras.ops.argmax(model(*inputs), axis=-1))
    wanted = logits(model, ids.source, ids.target).argmax(axis=-1)
    assert whole.output_shape == (None, None)
    np.testing.assert_array_equal(
        whole.predict([ids.source, ids.target], verbose=0), wanted)
    whole.save(tmp_path / "whole.keras")
    again = keras.saving.load_model(tmp_path / "whole.keras")
    np.testing.assert_array_equal(
        again.predict([ids.source, ids.target], verbose=0), wanted)


def test_fit_predict_and_what_is_compiled(tmp_path):
    model, ids = new(SHALLOW.replace(dropout=0.0)), batch(rows=32)
    labels = np.roll(ids.target, -1, axis=1)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=CONFIG.pad_id))
    losses = model.fit((ids.source, ids.target), labels, batch_size=8,
                       epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    found = model.predict((ids.source, ids.target), verbose=0)
    assert near(found, logits(model, ids.source, ids.target))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert int(again.optimizer.iterations) == 16
    again.fit((ids.source, ids.target), labels, verbose=0)


def test_a_name_and_a_dtype():
    """Every part computes in it, and the process' own stays."""
    before, ids = keras.config.dtype_policy(), batch()
    model = Transformer(CONFIG, name="mine", dtype="float64")
    assert keras.config.dtype_policy() is before
    assert model.name == "mine"
    assert {variable.dtype for variable in model.trainable_variables} == {
        "float64"}
    assert logits(model, ids.source, ids.target).dtype == np.float64
    again = Transformer.from_config(model.get_config())
    assert (again.name, again.dtype_policy.name, again.config) == (
        "mine", "float64", CONFIG)
