"""Layouts are found by values, and a map of names is read as written."""

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.causes.deciding import decide
from parity.comparison.compare import compare
from parity.comparison.result import INCOMPLETE, OUTPUT
from parity.matching.rearrangement import (
    SAME, best, candidates, parts, rearranged, shapes)
from parity.matching.mapping_file import read, write
from parity.matching.steps import suggest
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.tracing.trace import WHOLE
from parity_tests.support.engines import usable
from parity_tests.support.layers import (
    D, RNG, X, Plain, nnx_layer, outputs, traced, weights_of)


@pytest.mark.parametrize("layout, shape", [
    ("transpose 2 0 1, reshape 12 20", (4, 20, 3)),
    ("part 2 of 3 along 0, transpose 1 0", (36, 12)),
    ("reshape 3 3 4 12, part 3 of 3 along 1, reshape 12 12", (36, 12)),
    (SAME, (3, 4))])
def test_layouts_are_found_by_values(layout, shape):
    array = RNG.normal(size=shape)
    target = np.ascontiguousarray(rearranged(layout, array))
    tried = [*candidates(shape, target.shape), *parts(shape, target.shape)]
    found, far = best(array, target, tried)
    assert far == 0
    np.testing.assert_array_equal(rearranged(found, array), target)
    assert shapes(layout, shape)[-1] == target.shape


@pytest.mark.parametrize("layout", [
    "turn 1 0", "transpose", "transpose a b", "part 1 of 3", "", "reshape -1"])
def test_layouts_that_are_none(layout):
    with pytest.raises(InputError, match="is unknown"):
        rearranged(layout, X)


@pytest.mark.parametrize("layout", [
    "transpose 1 0", "reshape 5 5", "part 4 of 3 along 0",
    "part 1 of 5 along 1", "part 1 of 2 along 9"])
def test_layouts_that_do_not_fit(layout):
    with pytest.raises(InputError, match="does not fit"):
        rearranged(layout, X)


def test_equal_shapes_are_never_rearranged():
    """Even where another order of the axes would make them equal."""
    square = RNG.normal(size=(4, 4))
    found = compare(Plain("torch", {"x": X}, {"output": square}),
                    Plain("jax", {"x": X}, {"output": square.T.copy()}))
    assert found.verdict == DIVERGENCE
    assert outputs(found)[WHOLE].b_layout == SAME


def test_a_square_kernel_that_was_not_transposed():
    """It has the same values in the same places, and that is said."""
    usable("torch"), usable("jax")
    import jax.numpy as jnp
    import torch
    from flax import nnx
    mine = torch.nn.Linear(D, D).double()
    other = nnx.Linear(D, D, param_dtype=jnp.float64, rngs=nnx.Rngs(0))
    other.kernel.set_value(jnp.array(mine.weight.detach().numpy()))
    other.bias.set_value(jnp.array(mine.bias.detach().numpy()))
    found = compare(traced(mine, "torch"), traced(other, "jax"))
    assert found.verdict == DIVERGENCE and found.first.part == OUTPUT
    assert any("transposition may be missing" in n for n in found.notes)



def test_a_map_is_written_corrected_and_read(layer, tmp_path):
    a = traced(layer, "torch")
    b = traced(nnx_layer(weights_of(layer)), "jax")
    names, path = suggest(a, b), tmp_path / "names.toml"
    write(names, path)
    again = read(path, a, b)
    assert again.steps == names.steps
    assert again.parameters == names.parameters
    assert (again.only_a, again.only_b) == (names.only_a, names.only_b)
    path.write_text(path.read_text().replace(
        'a = "norm1"', 'a = "norm2"', 1))
    wrong = compare(a, b, read(path, a, b))
    unlike = [row for row in wrong.rows if row.diverges]
    assert {(row.a, row.b) for row in unlike} == {("norm2", "norms.0")}
    assert wrong.verdict == MATCH and wrong.divergences == []
    decide(wrong, a, b, None, None)
    assert wrong.explanations == [] and wrong.notes[-1].startswith(
        f"{len(unlike)} inner pairs differ although every output agrees")
    path.write_text('[[step]]\na = "norm1"\nb = "norms.0"\n')
    found = compare(a, b, read(path, a, b))
    assert found.verdict == INCOMPLETE and found.compared == 2
    assert "linear1" in found.names.only_a["steps"]


@pytest.mark.parametrize("text, words", [
    ('[[step]]\na = "norms.0"\nb = "norm1"\n', "swap the two"),
    ('[[step]]\na = "norm7"\nb = "norms.0"\n', "'norm7' that a does not"),
    ('[[step]]\na = "norm1"\nb = "nope"\n', "'nope' that b does not"),
    ('[[step]]\nb = "norms.0"\n', "without a or b"),
    ("[[step]\n", "cannot be read"), ("steps = 3\n", "entry 'steps'"),
    ('[[parameter]]\na = "norm1.bias"\nb = "norms.0.bias"\nlayout = "x"\n',
     "a_layout and b_layout"),
    ('[[parameter]]\na = "norm1.bias"\nb = "norms.0.bias"\n'
     'b_layout = "turn"\n', "is unknown"),
    (None, "there is no map")])
def test_a_map_that_is_wrong(layer, tmp_path, text, words):
    path = tmp_path / "names.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=words):
        read(path, traced(layer, "torch"),
             traced(nnx_layer(weights_of(layer)), "jax"))


def images(wrong=None, channels=6):
    """Traces of a model with channels second and of one with them last, on
    images of as many rows and columns as there are channels.

    ``wrong`` is what becomes of the first layer's output in the second.
    """
    import torch
    first, second = (np.random.default_rng(i).normal(size=(6, size))
                     for i, size in ((1, channels), (2, 6)))

    class Mix(torch.nn.Module):
        def __init__(self, matrix, last):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(matrix))
            self.formula = "oc,bhwc->bhwo" if last else "oc,bchw->bohw"

        def forward(self, x):
            return torch.einsum(self.formula, self.weight, x)

    class Model(torch.nn.Module):
        def __init__(self, last):
            super().__init__()
            self.last, self.mix = last, Mix(first, last)
            self.then = Mix(second, last)

        def forward(self, x):
            x = self.mix(x)
            x = wrong(x) if self.last and wrong else x
            return self.then(x)
    x = torch.tensor(np.random.default_rng(3).normal(size=(2, channels, 6, 6)))
    return traced(Model(False), "torch", x.numpy()), traced(
        Model(True), "torch", x.permute(0, 2, 3, 1).numpy())


@pytest.mark.parametrize("channels", [6, 3])
def test_channels_stand_in_one_place_in_a_model(channels):
    """The shapes of these arrays show nothing; those of others do."""
    usable("torch")
    found = compare(*images(channels=channels))
    assert found.verdict == MATCH
    assert found.first is None and "transpose 0 3 1 2" in found.sentence()


@pytest.mark.parametrize("wrong", [
    lambda x: x.flip(1) * 1.3, lambda x: 1.2 * x, lambda x: x.tanh()])
def test_the_place_of_channels_is_no_fault(wrong):
    usable("torch")
    found = compare(*images(wrong, channels=3))
    assert found.verdict == DIVERGENCE and found.first.name == "then · x"
    assert {row.b_layout for row in found.rows if row.part == OUTPUT} == {
        "transpose 0 3 1 2"}


def test_a_model_whose_output_alone_is_transposed_differs():
    """No other array shows that channels stand elsewhere in it."""
    usable("torch")
    import torch
    x = np.random.default_rng(0).normal(size=(2, 4, 4, 4))

    class Model(torch.nn.Linear):
        turned = False

        def forward(self, x):
            y = super().forward(x)
            return y.permute(0, 2, 3, 1) if self.turned else y
    torch.manual_seed(0)
    model = Model(4, 4).double()
    a = traced(model, "torch", x)
    model.turned = True
    assert compare(a, traced(model, "torch", x)).verdict == DIVERGENCE
