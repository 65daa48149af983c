"""Many seeds: no sound port raises an alarm, and a wrong one does."""

import json
from unittest import mock

import numpy as np
import pytest

from parity import ports
from parity.causes import catalogue
from parity.check import seeds
from parity.check.runners import EngineRunner, Reference
from parity.numerics import cancelling
from parity.numerics.comparator import DIVERGENCE
from parity.numerics.dtypes import BOTH
from parity_tests.support.commands import invoke

PORT = next((name for name in ports.known_ports()
             if ports.absent(name) is None), None)


#: A seed of a model in which a norm stands behind another one, with a tiny ε:
#: of the gradients of the first one's scale and bias nothing is left.
CANCELS = next(
    seed for seed, words in enumerate(seeds.variants())
    if (words["norm"], words["residual"], words["final_norm"],
        words["stacks"]) == ("scalar_std", "post", True, "both"))

#: The same of an RMS norm, whose mean square's gradient cancels.
RMS_CANCELS = next(
    seed for seed, words in enumerate(seeds.variants())
    if (words["norm"], words["residual"], words["final_norm"],
        words["stacks"]) == ("rms", "post", True, "both"))

#: The gradients that are sums there of which hardly anything is left.
SUMS = [f"grad {stack}.layers.0.feed_forward_residual.norm.{name}"
        for stack in ("encoder", "decoder")
        for name in ("scale", "bias", "mean", "std")]


@pytest.fixture
def one_port():
    if PORT is None:
        pytest.skip("not checked: no framework is here")
    return ports.ready(PORT)


def command(*words):
    return invoke("check", "--seeds", *words)


@pytest.mark.long
def test_a_few_seeds_raise_no_alarm(port):
    tally = seeds.tallied([port.NAME], BOTH, (3, CANCELS))
    assert tally.alarms == [] and tally.compared > 500
    assert tally.nearest.keys() == {
        (port.NAME, dtype, case) for dtype in BOTH
        for case in ("forward", "gradients")}
    assert all(0 < one.share < 1 for one in tally.nearest.values())


def test_what_cancels_is_measured_against_what_is_summed(one_port):
    """So a sound port is right there, and a wrong norm is not."""
    config, weights, (_, case) = seeds.drawn(CANCELS)
    assert (config.norm, config.residual, config.final_norm) == (
        "scalar_std", "post", True)
    for dtype, worst in ("float64", 1e-4), ("float32", 0.5):
        reference = Reference(config, weights, dtype)
        truth = reference.truth(case)
        differences = seeds.differences(
            EngineRunner(one_port, config, reference.arrays, dtype), case,
            truth, dtype)
        for name in SUMS:
            norm, _, last = name.rpartition(".")
            assert truth.least(name) == pytest.approx(np.linalg.norm(
                truth.steps[f"{norm}.{cancelling.TERMS[last]}"]))
            assert np.linalg.norm(truth.steps[name]) < 1e-4 * truth.least(name)
            assert differences[name].share < worst, (name, differences[name])


@pytest.mark.parametrize("field, wrong", [
    ("final_norm_eps", [name for name in SUMS
                        if name.endswith(("scale", "std"))]),
    ("norm_eps", ["grad encoder.layers.0.feed_forward_residual.norm.output"])])
def test_a_wrong_norm_shows_where_sums_cancel(one_port, field, wrong):
    """An ε of 1.1e-6 for 1e-6; what is left of the sums is made of the
    second norm's."""
    config, weights, (_, case) = seeds.drawn(CANCELS)
    other = config.replace(**{field: 1.1e-6})
    differences = seeds.differences(
        EngineRunner(one_port, other, weights, "float64"), case,
        Reference(config, weights, "float64").truth(case), "float64")
    for name in wrong:
        assert differences[name].verdict == DIVERGENCE, name


def test_a_mean_square_is_measured_against_what_it_sums(one_port):
    """So a sound port is right there, and a wrong ε in the norm is not."""
    config, weights, (_, case) = seeds.drawn(RMS_CANCELS)
    assert config.norm_eps == config.final_norm_eps == 1e-6
    truth = Reference(config, weights, "float64").truth(case)
    name = "grad encoder.layers.0.feed_forward_residual.norm.mean_square"
    assert np.linalg.norm(truth.steps[name]) < 1e-4 * truth.least(name)
    for other, right in (config, True), (
            config.replace(final_norm_eps=1.1e-6), False):
        found = seeds.differences(EngineRunner(
            one_port, other, weights, "float64"), case, truth, "float64")[name]
        assert (found.share < 1e-4) if right else (
            found.verdict == DIVERGENCE), found


def test_seeds_differ_and_are_the_same_each_time():
    first, again, other = (seeds.drawn(seed) for seed in (
        CANCELS, CANCELS, CANCELS + len(seeds.variants())))
    assert all(np.array_equal(first[1][name], again[1][name])
               for name in first[1])
    assert not np.array_equal(
        first[1]["encoder.layers.0.feed_forward.inner.kernel"],
        other[1]["encoder.layers.0.feed_forward.inner.kernel"])
    assert not np.array_equal(first[2][0].inputs[0], other[2][0].inputs[0])


def test_seeds_are_dealt_out():
    assert seeds.dealt(5, "ab") == [range(2), range(2, 5)]
    assert seeds.dealt(1, "ab") == [range(0), range(1)]


def test_a_fault_is_an_alarm(one_port):
    with catalogue.by_name("scores not divided").put(PORT):
        tally = seeds.tallied([PORT], ["float64"], [
            seed for seed, words in enumerate(seeds.variants())
            if words["attention_scale"] == "root"][:2])
    assert len(tally.alarms) == 4
    assert all("seed" in alarm and "scores" in alarm
               for alarm in tally.alarms if ", forward," in alarm)


def test_a_port_that_fails_is_an_alarm(one_port):
    with mock.patch.object(one_port, "build", side_effect=OSError("no room")):
        tally = seeds.tallied([PORT], ["float64"], range(1))
    assert len(tally.alarms) == 2
    assert all("OSError: no room" in alarm for alarm in tally.alarms)


@pytest.mark.long(8)
def test_the_command(one_port, tmp_path):
    path = tmp_path / "seeds.json"
    setups = [seeds.Setup("2 threads", {"OMP_NUM_THREADS": "2"})]
    with mock.patch.object(seeds, "setups", lambda: setups):
        done = command("1", "--port", PORT, "--dtype", "float64",
                      "--json", str(path))
    assert done.exit_code == 0, done.output
    assert "no false alarms" in done.output and "2 threads" in done.output
    made = json.loads(path.read_text())
    assert made["setups"][0]["compared"] > 100


@pytest.mark.parametrize("words", [
    ["2", "--gradients"], ["2", "--preset", "lesson"], ["-1"],
    ["2", "--port", "mxnet"]])
def test_usage(words):
    assert command(*words).exit_code == 2
