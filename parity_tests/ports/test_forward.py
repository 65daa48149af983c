"""Conformance of the forward pass, number by number.

Every step of every component and of the whole model, of each port against the
reference, at the limits of parity/numerics/tolerances.py: the same check that
``parity check`` makes.
"""

import pytest

from transformer_contract import weights
from transformer_contract.config import PLAIN, at_test_size
from parity import ports
from parity.check import cases, covering, ledger
from parity.check.run import Check
from parity.numerics import tolerances
from parity.numerics.comparator import MATCH

# keras: TensorFlow hands bfloat16 to NumPy in a way that NumPy 2 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")

#: How many numbers, arrays and masks are compared, so that none goes missing:
#: preset -> (in float64, in any other dtype), the canary included. Every preset
#: is compared by ``parity check`` and by ``parity check ledger --check``.
COMPARED = {"lesson": (345, 249), "vaswani2017_base": (335, 239)}


def check(port, preset, dtype):
    """The report of the check of one port, preset and dtype."""
    job = Check([preset], [port.NAME], [dtype], full_size=False,
                gradients=False)
    for _ in job.groups():
        pass
    return job.report


def holds(report, preset, dtype):
    """Whether all was compared and all matched; shows what did not."""
    wrong = [(row.case, row.name, found)
             for row, _, found in report.divergences()]
    assert not wrong, wrong[:3]
    assert report.verdict == MATCH
    assert report.compared == report.expected == COMPARED[preset][
        dtype != "float64"]
    assert {row.dtype for row in report.rows[1:]} == {dtype}
    return True


@pytest.mark.long(16)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("preset", COMPARED)
def test_every_step_is_the_references(port, preset, dtype):
    """Alone and in a model, padded on both sides, and with no source."""
    report = check(port, preset, dtype)
    assert holds(report, preset, dtype)
    assert not list(ledger.problems(report.rows))  # nor worse than it was
    if dtype == "float64":
        limits = {row.limit for row in report.rows[1:]}
        assert limits == {0, tolerances.FLOAT64_LIMIT}  # 0: masks are equal


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("preset", COMPARED)
def test_sixteen_bits_cost_what_they_must(port, preset, dtype):
    """No more than twice what rounding every operation once costs."""
    assert holds(check(port, preset, dtype), preset, dtype)


@pytest.mark.parametrize("field", sorted(
    covering.choices().keys() - {"smoothing", "padding_learns"}))
def test_each_word_of_a_choice_computes_something_else(field):
    """Of equal outputs one would be of a word that nobody reads.

    The two left out show in the loss and in gradients alone. That ports
    compute what the reference does, ``parity check --wide`` asks of every two
    words at once.
    """
    engine, answers = ports.engine("numpy"), set()
    base = at_test_size(PLAIN)
    base = base.replace(target_vocab=base.source_vocab)
    for word in covering.choices()[field]:
        config = base.replace(**{field: word})
        model = engine.build(
            "transformer", config, weights.probe_weights(config))
        steps = engine.forward(model, *cases.padded_batch(config))
        answers.add(steps["output"].tobytes())
    assert len(answers) == len(covering.choices()[field])
