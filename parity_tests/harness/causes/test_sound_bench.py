"""Sound pairs: they are sound, and nothing is said of them.

``python -m benchmarks.sound`` asks it of all, at night.
"""

import pathlib

import pytest

from benchmarks import sound
from benchmarks.sound import judge, targets
from benchmarks.sound.pair import FILES, LIMITS, Sound, pair
from parity.commands.scripts import call_script
from parity_tests.support.engines import usable

FOLDER = pathlib.Path(sound.__file__).parent

#: What is in the folder and has no pairs.
OTHERS = {"__init__", "__main__", "judge", "pair", "targets", "torch_llama",
          "weights"}

#: Ways of writing that nothing was ever said of.
SILENT = ("queries_scaled_before", "eager_or_sdpa", "heads_third_axis",
          "softmax_online", "residual_inside", "sequential_or_attributes",
          "layer_norm_of_squares", "gelu_by_erfc", "lstm_by_hand",
          "in_place", "convolution_by_unfold")


@pytest.fixture(autouse=True)
def torch_runs():
    usable("torch")


def test_every_file_is_on_the_list():
    assert {path.stem for path in FOLDER.glob("*.py")} == {
        *FILES, *OTHERS, "torch_parts", "nnx_parts", "keras_parts"}


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_said(name):
    made = judge.outcome_of(pair(name))
    assert made.fate == judge.SILENT, made
    assert made.error <= LIMITS["float64"]


def test_another_function_is_not_sound():
    one, two = pair("gelu_by_erf"), pair("silu_as_quotient")
    made = judge.outcome_of(Sound("wrong", "test", one.a, two.b))
    assert made.fate == judge.UNSOUND and made.error > 1e-6
    assert "| all | 1 | 0 | 0 | 0 | 0 | 0 | 1 |" in [
        *judge.table([made])][-1]


def test_a_maker_is_a_target():
    model, inputs, keywords = call_script(
        f"{FOLDER / 'targets.py'}:eager_or_sdpa_a")
    assert judge.output((model, inputs, keywords))[0].shape == (2, 7, 20)
    with pytest.raises(AttributeError):
        targets.nothing  # noqa: B018
