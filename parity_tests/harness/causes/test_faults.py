"""Proof by faults: change one thing in a port, and the check must see it.

``parity check faults`` puts every fault of the catalogue into every port, at
night; here one fault of each topic is put into one port, each in turn into
another. It must be caught at the step where it shows first, and named as itself
and as nothing else.
"""

import itertools
from unittest import mock

import numpy as np
import pytest

from parity import ports
from parity.causes import catalogue, page
from parity.diagnosis import proof
from parity.causes.cause import Cause
from parity.diagnosis.diagnose import Diagnosis, probe
from parity.causes.faults.attention import root_is, root_of_heads_is
from parity.causes.faults.generation import in_beam
from parity.causes.faults.gradients import multiplied
from parity.causes.faults.norms import LAYER, in_norm
from parity.causes.faults.putting import all_of
from parity.causes.faults.training_steps import in_step
from parity.causes.formulas import norm
from parity.diagnosis.places import PlacedCause
from parity.diagnosis.training_diagnosis import TrainingDiagnosis, proof_run
from parity.commands.faults import TOPICS
from parity_tests.support.commands import invoke
from parity_tests.support.places import ROOT

FAULTS = catalogue.faults()
BY_NAME = {fault.name: fault for fault in FAULTS}


def in_turn(names, cases):
    """Have a test ask each case of one port, the next one of another."""
    return pytest.mark.parametrize(f"port, {names}", [
        (name, *case) for name, case in zip(
            itertools.cycle(ports.known_ports()), cases)], indirect=["port"])


@pytest.mark.long
@in_turn("name", [[name] for name in {
    fault.topic: fault.name for fault in FAULTS}.values()])
def test_a_fault_of_each_topic_is_caught_and_named(port, name):
    found = proof.proof(BY_NAME[name], port)
    assert found.caught, found.in_words
    assert found.named, found.in_words


@pytest.mark.long(24)
@pytest.mark.parametrize("fault", catalogue.equivalents(),
                         ids=lambda fault: fault.name)
def test_what_is_no_fault_is_not_found(port, fault):
    """Each says why it computes the same numbers, and it does."""
    assert fault.equivalent
    assert proof.proof(fault, port).findings == []


def test_the_command_has_every_topic():
    assert list(TOPICS) == page.topics(catalogue.faults())


def test_names_are_one_each():
    assert len(BY_NAME) == len(FAULTS)
    text = (ROOT / "README.md").read_text()
    assert f"`parity check faults` puts {len(FAULTS)} faults" in " ".join(
        text.split())


@pytest.mark.long(24)
@pytest.mark.parametrize("preset", ["complete", "lesson", "vaswani2017_base"])
def test_without_a_fault_nothing_is_found(port, preset):
    """What the tests above change is what they notice."""
    fault = next(f for f in FAULTS if f.preset == preset and not f.changes)
    assert proof.diagnosis_for(fault).findings(port) == []


def test_a_fault_that_no_one_knows_is_not_named(port):
    """Scores off by a thousandth are like no fault of the catalogue."""
    fault = root_of_heads_is(lambda x: 1.001 * x**0.5)
    diagnosis = proof.diagnosis_for(BY_NAME["scores not divided"])
    with fault(port.NAME):
        found = diagnosis.findings(port)
    assert [f.cause for f in found] == ["not identified"]
    assert (found[0].case, found[0].step) == (
        "single_head_attention", "scores")


@pytest.mark.long
@in_turn("first, second", [
    ("embedding not scaled", "scores not divided"),
    ("no causal mask", "gelu, not relu"),
    ("value kernel transposed", "deviation norm's ε is 1e-05"),
])
def test_two_faults_are_named_one_after_the_other(port, first, second):
    """The second once the first is allowed for."""
    pair = BY_NAME[first], BY_NAME[second]
    with pair[0].put(port.NAME), pair[1].put(port.NAME):
        found = proof.diagnosis_for(pair[0]).findings(port)
    assert len(found) == 2
    assert sorted(f.cause for f in found) == sorted((first, second))


@pytest.mark.long
@in_turn("name, place, words", [
    ("gelu, not relu", "encoder.layers.1", "encoder layer 2"),
    ("scores not divided", "decoder.layers.2.cross_attention",
     "cross-attention of decoder layer 3"),
    ("scores not divided", "decoder.layers.*.cross_attention",
     "cross-attention of decoder layers"),
    ("no residual connection", "encoder.layers.0.feed_forward_residual",
     "feed forward residual of encoder layer 1"),
    ("softmax over heads", "decoder", "decoder"),
    ("embedding not scaled", "target_embedding", "target embedding"),
])
def test_a_fault_in_one_place_is_named_with_it(port, name, place, words):
    """Not a fault everywhere, which would show where the port is right."""
    diagnosis = proof.diagnosis_for(BY_NAME[name])
    with PlacedCause(BY_NAME[name], place).put(port.NAME):
        found = diagnosis.findings(port)
    assert [f.cause for f in found] == [f"{name} ({words} only)"]


def test_a_cause_must_hold_on_two_scales():
    """A constant ε that fits the first input alone is not named.

    The fault has an epsilon that follows the input's size: on the first probe
    it is that of a known fault.
    """
    engine = ports.engine("numpy")
    diagnosis = proof.diagnosis_for(BY_NAME["layer norm's ε is 1e-05"])
    right = norm.steps

    def made(x, scale, bias, settings):
        eps = 1e-5 if np.abs(x).max() > 1 else 1e-3
        return right(x, scale, bias, settings | {"epsilon": eps})

    alone = Diagnosis(diagnosis.config, diagnosis.weights, [
        BY_NAME["layer norm's ε is 1e-05"]])
    alone.cases = [case for case in alone.cases if case.name == "norm"]
    case, = alone.cases
    alone._truth(case, ())  # before the reference is changed
    for inputs in case, probe(case):
        alone._replay(inputs, alone.faults[0], ())
    with mock.patch.object(norm, "steps", made), in_norm(
            LAYER, {})("numpy"):
        found = alone.findings(engine)
    assert [f.cause for f in found] == ["not identified"]


@pytest.mark.long(24)
def test_check_names_the_cause(port):
    fault = BY_NAME["scores over √d_model"]
    with fault.put(port.NAME):
        done = invoke(
            "check", "--preset", "complete", "--port", port.NAME, "--dtype",
            "float64", "--no-full-size")
    printed = " ".join(done.output.split())
    assert done.exit_code == 1
    assert (f"First divergence: {port.NAME}, complete, self_attention, step "
            "scores (float64, cpu)") in printed
    assert "Cause: scores over √d_model" in printed


@pytest.mark.long(32)
def test_clipping_that_is_left_out_of_a_training_step_alone():
    port = ports.engine("torch")
    if isinstance(port, ports.NotChecked):
        pytest.skip(f"not checked: {port.reason}")
    train = ports.module_of("torch", "train")
    old = train.clip_by_global_norm
    with mock.patch.object(train, "clip_by_global_norm",
                           lambda gradients, limit: old(gradients, 0.0)):
        found, = TrainingDiagnosis(proof_run({})).findings(port)
    assert found.cause == "no clipping"


@pytest.mark.parametrize("name, options, place", [
    ("dropout masks are those of the first batch", ("--train", "2"),
     "training, 1 step, step 1 loss"),
    ("gradients are of the loss's sum", ("--gradients",),
     "gradients, grad source_embedding.table"),
    ("one hypothesis stands twice", ("--generate",),
     "beam 4, paper, tokens, uncached"),
    ("v is 0 when resumed", ("--wide",), "step 3 weights")])
@pytest.mark.long
def test_check_names_the_cause_of_what_is_no_forward_pass(
        name, options, place):
    port = ports.engine("torch")
    if isinstance(port, ports.NotChecked):
        pytest.skip(f"not checked: {port.reason}")
    with BY_NAME[name].put("torch"):
        done = invoke(
            "check", "--preset", "lesson", "--port", "torch", "--dtype",
            "float64", "--no-full-size", *options)
    printed = " ".join(done.output.split())
    assert done.exit_code == 1
    assert f"Cause: {name} (" in printed and place in printed
    assert "And once that" not in printed


#: A diagnosis reads numbers and knows no port, so one has such faults.
ANY = pytest.mark.parametrize("port", ["torch"], indirect=True)


@ANY
@pytest.mark.long
def test_a_training_fault_that_no_one_knows_is_not_named(port):
    """A share of the loss off by a thousandth."""
    fault = in_step("loss + share * loss_i", "loss + share * loss_i * 1.001")
    diagnosis = proof.diagnosis_for(BY_NAME["a seed is cut to 32 bits"])
    assert diagnosis.findings(port) == []
    with fault(port.NAME):
        found = diagnosis.findings(port)
    assert [(f.cause, f.step) for f in found] == [
        ("not identified", "step 1 loss")]


@ANY
@pytest.mark.long
@pytest.mark.parametrize("fault, like", [
    (in_beam("scores / settings.penalty(written)",
             "scores / settings.penalty(written) * 1.001"),
     "a target's length is one more"),
    (multiplied(lambda config, labels: 1.001),
     "gradients are turned round")])
def test_a_fault_beyond_the_forward_pass_that_no_one_knows(port, fault, like):
    """A thousandth more, of a score and of every gradient."""
    diagnosis = proof.diagnosis_for(BY_NAME[like])
    assert diagnosis.findings(port) == []
    with fault(port.NAME):
        found = diagnosis.findings(port)
    assert [f.cause for f in found] == ["not identified"]


@pytest.mark.long
def test_of_two_faults_in_one_search_none_is_named(port):
    """No number is what one alone would make it."""
    pair = [BY_NAME[name] for name in (
        "a target's length is one more", "one hypothesis stands twice")]
    with pair[0].put(port.NAME), pair[1].put(port.NAME):
        found = proof.diagnosis_for(pair[0]).findings(port)
    assert [f.cause for f in found] == ["not identified"]


def test_check_says_that_a_cause_is_not_identified():
    port = ports.engine("torch")
    if isinstance(port, ports.NotChecked):
        pytest.skip(f"not checked: {port.reason}")
    with root_is("embedding", lambda x: x**0.51)("torch"):
        done = invoke(
            "check", "--preset", "complete", "--port", "torch", "--dtype",
            "float64", "--no-full-size")
    assert done.exit_code == 1
    assert "Cause: not identified" in " ".join(done.output.split())


@pytest.mark.long(24)
def test_the_table(tmp_path):
    path = tmp_path / "faults.json"
    done = invoke("check", "faults", "--topic", "residual", "--json", str(path))
    assert done.exit_code == 0, done.output
    assert "pre-norm, not post-norm" in done.output
    assert "0 not" in done.output and path.exists()


@pytest.mark.long(4)
def test_a_fault_that_is_not_caught_is_said():
    """A catalogue that changes nothing would prove nothing."""
    idle = Cause("nothing", "residual", "Nothing.", put=all_of(),
                 case="residual", step="norm.mean")
    with mock.patch.object(catalogue, "faults", lambda: (idle,)):
        done = invoke("check", "faults")
    assert done.exit_code in (1, 4)
    if done.exit_code == 1:
        assert "NOT CAUGHT" in done.output


def test_a_topic_may_have_a_space():
    assert ports.split_words(["layer norm, loss", "one two"],
                             ("layer norm", "loss", "one", "two"), "topic") == [
        "layer norm", "loss", "one", "two"]


@pytest.mark.parametrize("arguments", [
    ["--topic", "gardening"], ["--port", "mxnet"],
    ["--json", "nowhere/f.json"]])
def test_usage(arguments):
    done = invoke("check", "faults", *arguments)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
