"""The check of the fast form: what it compares, and what may be missing."""

from unittest import mock

import pytest

from transformer_contract.config import at_test_size, preset
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases, search_runs, training_runs, wide
from parity.check.run import Check
from parity.check.runners import EngineRunner, Reference, compare_steps
from parity.check.port_calls import differences
from parity.check.workers import ModelSpec, Workbench
from parity.numerics.comparator import DIVERGENCE
from parity_tests.support.commands import invoke

CONFIG = at_test_size(preset("complete"))
HERE = [name for name in ports.known_ports() if not ports.absent(name)]


def compared(steps, fused):
    """The Differences of some of the reference's steps from all."""
    weights = probe_weights(CONFIG)
    reference = Reference(CONFIG, weights, "float64")
    truth = reference.truth(cases.model_case(cases.padded_batch(CONFIG)))
    runner = EngineRunner(reference.exact.engine, CONFIG, weights, "float64")
    runner.engine = type("Engine", (), {"FUSED": fused, "NAME": "numpy"})
    return truth, compare_steps(
        {name: value for name, value in truth.steps.items()
         if name.rpartition(".")[2] in steps}, truth, "float64", runner.fused)


def test_only_fused_steps_may_be_missing():
    truth, differences = compared({"output"}, ("scores", "weights"))
    missing = {name for name, one in differences.items()
               if one.verdict == DIVERGENCE}
    assert missing == {
        name for name in truth.steps if name.rpartition(".")[2] not in (
            "output", "scores", "weights")}


def test_an_output_is_never_fused():
    _, differences = compared({"scores"}, ("scores", "output", "loss"))
    assert differences["output"].verdict == DIVERGENCE


@pytest.mark.parametrize("form", ports.FORMS)
def test_the_readable_form_shows_every_step(form):
    engine = mock.Mock(wraps=ports.engine("numpy"), FUSED={"scores"})
    engine.NAME = "numpy"
    bench, case = Workbench(engine), cases.model_case(
        cases.padded_batch(CONFIG))
    weights = probe_weights(CONFIG)
    truth = Reference(CONFIG, weights, "float64").truth(case)
    engine.call = lambda *inputs, **words: (None, {
        name: value for name, value in truth.steps.items()
        if not name.endswith("scores")})
    with mock.patch.object(ports, "engine", return_value=engine):
        found = differences(
            bench, ModelSpec("x", CONFIG, "float64", "cpu", weights, form),
            case, case.inputs, truth)
    missing = {name for name, one in found.items()
               if one.verdict == DIVERGENCE}
    assert missing == ({name for name in truth.steps
                        if name.endswith("scores")}
                       if form == "readable" else set())


def test_weights_have_gradients_and_steps_need_not():
    engine = type("Engine", (), {"FUSED": ("gradients",), "NAME": "numpy"})
    runner = EngineRunner(engine, CONFIG, probe_weights(CONFIG), "float64")
    assert runner.fused("grad encoder.layers.0.feed_forward.output")
    assert not runner.fused("grad encoder.layers.0.feed_forward.inner.kernel")
    assert not runner.fused("all weights") and not runner.fused("loss")


@pytest.mark.parametrize("name", HERE[:1])
def test_the_fast_form_is_checked_and_the_reference_has_one(name):
    job = Check(["lesson"], [name], ["float64"], full_size=False, train=1,
                gradients=True, generate=True, form="fast")
    rows = [row for group in job.groups() for row in group]
    assert job.report.verdict == "match"
    assert job.port_names == ["numpy", name]
    assert {row.form for row in rows
            if row.case != "precision canary"} == {"fast"}
    assert all(row.differences.keys() <= {"numpy", name} for row in rows)
    assert {row.name for row in rows} >= {
        "predict", "loss", "all weights", "step 1 m", "tokens, cached"}
    assert {one.port for one in job.report.not_fused} <= {name}
    assert job.report.as_json()["form"] == "fast"


@pytest.mark.parametrize("name", HERE[:1])
def test_numpy_has_no_fast_form_in_16_bits(name):
    job = Check(["lesson"], [name], ["bfloat16"], full_size=False,
                form="fast")
    rows = [row for group in job.groups() for row in group]
    assert job.report.verdict == "match"
    assert all(row.differences.keys() == {name} for row in rows
               if row.case != "precision canary")
    assert any("NumPy's own fast form in bfloat16" in words
               for words in job.report.not_done)
    compared = sum(len(row.differences) for row in rows)
    assert job.report.expected - job.report.not_compared == compared


@pytest.mark.long(8)
@pytest.mark.parametrize("name", HERE[:1])
def test_wide_models_match_in_the_fast_form(name):
    """A form that shows fewer steps is asked again, too."""
    job = Check(["lesson"], [name], ["float64"], full_size=False, wide=True,
                form="fast")
    first = wide.models()[:1]
    with mock.patch.object(wide, "models", return_value=first), \
            mock.patch.object(search_runs, "searched_models", tuple), \
            mock.patch.object(training_runs, "varied", tuple):
        rows = [row for group in job.groups() for row in group]
    assert job.report.verdict == "match"
    assert {row.name for row in rows if row.form == "fast"} >= {
        "steps equal to the bit", "steps unchanged afterwards"}


@pytest.mark.parametrize("name", HERE)
@pytest.mark.long(12)
def test_the_fast_form_is_no_readable_one(name):
    """What it does not leave to the readable form is made of its own."""
    readable, fast = (ports.engine(name, form) for form in ports.FORMS)
    config = CONFIG.replace(norm="layer", dropout=0.0)
    if name not in ports.usual_ports():  # it may leave all of it, and say so
        assert [*fast.not_fused(config)] == [
            "forward pass", "generation", "training"]
        return
    assert not [*fast.not_fused(config)]
    fast.set_precision()
    weights = probe_weights(config)
    model = fast.build("transformer", config, weights)
    trainer = fast.trainer(model, TrainingConfig())
    assert ".fast." in type(trainer).__module__
    steps = [engine.forward(engine.build("transformer", config, weights),
                            *cases.padded_batch(config))
             for engine in (readable, fast)]
    hidden = {step.rpartition(".")[2] for step in
              steps[0].keys() - steps[1].keys()}
    assert hidden == set(getattr(fast, "FUSED", ())) - {"gradients"}


def test_what_is_left_to_the_readable_form_is_said():
    config = CONFIG.replace(norm="rms", positions="relative")
    assert [*ports.engine("numpy", "fast").not_fused(config)] == [
        "generation (positions 'relative')", "training (norm 'rms')"]


def test_an_unknown_form_is_refused():
    found = invoke("check", "--form", "fats")
    assert found.exit_code == 2
    assert "did you mean fast" in found.output


def test_a_fast_form_that_departs_is_caught():
    """At its own step, and in its outputs and training alone."""
    if "torch" not in HERE:
        pytest.skip("not checked: torch is not here")
    from impl_torch.fast.attention import MultiHeadAttention
    with mock.patch.object(MultiHeadAttention, "merge",
                           lambda self, x: x.flatten(2).swapaxes(1, 2)):
        job = Check(["notebook"], ["torch"], ["float64"], full_size=False,
                    train=1, gradients=True, form="fast")
        list(job.groups())
    caught = {(row.case, row.name)
              for row, port, _ in job.report.divergences()}
    assert job.report.verdict == "divergence"
    assert {("self_attention", "output"),
            ("transformer, every way to ask", "predict"),
            ("gradients", "all weights"),
            ("training, 1 step", "step 1 m")} <= caught
    assert "masks" not in {case for case, _ in caught}


@pytest.mark.parametrize("name", HERE[:1])
@pytest.mark.parametrize("devices", [("cpu", "cuda"), ("cuda",)])
def test_a_gpu_is_not_expected_of_numpy(name, devices):
    """NumPy's own fast form counts where there is a processor, in its dtypes.
    """
    check = Check(["lesson"], [name], ["float64", "float16"], devices,
                  full_size=False, form="fast", train=2)
    try:
        for _ in check.groups():
            pass
    finally:
        check.close()
    report = check.report
    assert ("numpy" in check.port_names) == ("cpu" in devices)
    assert "numpy" not in {one.port for one in report.not_checked}
    assert report.compared == report.expected - report.not_compared
    assert report.compared or "cpu" not in devices


@pytest.mark.parametrize("name", HERE)
def test_the_native_form_answers_learns_and_searches(name):
    """Of the framework's own layers; what they cannot be is told, not made."""
    found = invoke("check", "--form", "native", "--port", name, "--preset",
                   "lesson,notebook", "--dtype", "float32", "--gradients",
                   "--generate")
    assert found.exit_code == 0, found.output
    words = " ".join(found.output.split())
    assert f"{name}, lesson: the native form cannot be this model" in words
    assert "not checked" in words.rpartition(";")[0].rpartition(";")[2]
    for what in ("transformer's output", "gradients", "native search: beam"):
        assert what in words


def test_the_native_form_trains_no_run():
    found = invoke("check", "--form", "native", "--train", "2")
    assert found.exit_code == 2
    assert "--form native goes with" in found.output
