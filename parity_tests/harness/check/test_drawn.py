"""Drawn models: the same each time, sound, and what they notice of edits."""

import contextlib
import dataclasses
import importlib.machinery
import sys
from unittest import mock

import pytest

from transformer_contract.config import CHOICES
from parity import ports
from parity.check import drawn, kinks
from parity.check.run import Check
from parity.check.runners import Reference, compare_steps
from parity.numerics.comparator import DIVERGENCE
from parity.numerics.dtypes import BOTH
from parity.ports import folder
from parity_tests.support.commands import invoke
from parity_tests.support.engines import usable

LAYERS = "        for layer in self.layers:\n"
ERFC = "x * (torch.special.erfc(-x / math.sqrt(2)) / 2)"
KEPT = "kept = labels != pad_id"
COUNT = "torch.sum(kept), min"
NATIVE = "    value = np.ascontiguousarray(value)\n"
PREDICT = "        return to_numpy(model("
SEARCH = "    rows = check_search("
SCORE = "return query @ key.mT / self.divisor"
SHRUNK = "learning_rate * self.training.weight_decay"


def where(condition, factor="1.001"):
    """A stack that is wrong where a condition holds."""
    return LAYERS, (f"        x = x * ({factor} if {condition} else 1)\n"
                    f"{LAYERS}")


def first(statement, place=NATIVE):
    """A statement that stands before another one."""
    return place, f"    {statement}\n{place}"


#: What is wrong -> a file of impl_torch, what stands there, what it becomes.
SIX = {
    "padding's id is 0": ("loss.py", KEPT, "kept = labels != 0"),
    "GELU by tanh": (
        "dialects/feed_forward.py", ERFC, "gelu_tanh(x)"),
    "ReLU capped": ("dialects/feed_forward.py", "torch.relu(x)",
                    "torch.clamp(x, 0, 20)"),
    "two rows": ("decoder.py", "        for i, layer in enumerate(",
                 "        x = x * (1.001 if len(x) == 2 else 1)\n"
                 "        for i, layer in enumerate("),
    "S = T": ("decoder.py", "        for i, layer in enumerate(",
              "        if memory.shape[1] == x.shape[1]:\n"
              "            x = x * 1.001\n"
              "        for i, layer in enumerate("),
    "a smoothed loss counts padding": (
        "loss.py", COUNT, "torch.sum(kept | (label_smoothing > 0)), min"),
}

#: The same of other kinds.
OTHERS = {
    "32 rows": ("encoder.py", *where("len(x) >= 32")),
    "a source of 256": ("encoder.py", *where("x.shape[1] >= 256")),
    "a target of 2,048": (
        "masks.py", "position[None, :] <= position[:, None]",
        "position[None, :] + (length >= 2048) <= position[:, None]"),
    "layer 11": ("encoder.py", "in self.layers:", "in self.layers[:10]:"),
    "128 features a head": ("attention.py", SCORE, (
        f"{SCORE} * (1.001 if query.shape[-1] >= 128 else 1)")),
    "NumPy's seed": ("engine.py", *first("np.random.seed(0)", SEARCH)),
    "by columns": ("engine.py", *first(
        "value = (np.ravel(value, 'K').reshape(value.shape) if "
        "np.ndim(value) == 2 and value.dtype.kind in 'iu' else value)")),
    "own masks made causal": (
        "decoder.py", "self.self_attention(x, x, mask,",
        "self.self_attention(x, x, mask & mask.tril(),"),
    "the first row's mask for all": (
        "decoder.py", "memory, memory_mask, None)",
        "memory, memory_mask[:1], None)"),
    "a prompt of one token": (
        "dialects/one_stack.py", "        prompt = memory.shape[1]\n",
        "        prompt = memory.shape[1]\n        memory = torch.clamp("
        "memory, max=9)\n"),
    "β₁ of 0": ("optimizer.py", "training.beta1, training.beta2",
                "training.beta1 or 0.9, training.beta2"),
    "β₂ of 0": ("optimizer.py", "training.beta1, training.beta2",
                "training.beta1, training.beta2 or 0.98"),
    "no decay": ("dialects/optimizer.py", SHRUNK,
                 "learning_rate * (self.training.weight_decay or 0.01)"),
    "one buffer for every answer": (
        "engine.py", PREDICT,
        "        return vars(model).setdefault('buffers', {}).setdefault("
        "'one', to_numpy(model(*(to_native(x, home(model)) for x in inputs)))"
        ")\n" + PREDICT),
    "an answer is a table": ("engine.py", "value.clone()", "value"),
    "a gradient at 2,048 wide": (
        "feed_forward.py", "torch.relu(inner)",
        "torch.relu(inner if inner.shape[-1] < 2048 else inner.detach())"),
}


@contextlib.contextmanager
def planted(file, old, new):
    """The port for PyTorch with an edit of one of its files."""
    path = folder("torch") / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1, (file, old)
    real = importlib.machinery.SourceFileLoader.get_code

    def get_code(self, name):
        if self.path != str(path):
            return real(self, name)
        return compile(text.replace(old, new, 1), self.path, "exec")

    ours = {name: sys.modules.pop(name) for name in [*sys.modules]
            if name.split(".")[0] == "impl_torch"}
    ports.engine.cache_clear()
    try:
        with mock.patch.object(importlib.machinery.SourceFileLoader,
                               "get_code", get_code):
            yield
    finally:
        for name in [name for name in sys.modules
                     if name.split(".")[0] == "impl_torch"]:
            del sys.modules[name]
        sys.modules.update(ours)
        ports.engine.cache_clear()


def divergence(draws, presets=()):
    """The first Row that diverges of the port for PyTorch, or None."""
    job = Check(presets, ["torch"], BOTH, full_size=False, draws=draws)
    try:
        return next((row for rows in job.groups() for row in rows
                     if row.verdict == DIVERGENCE), None)
    finally:
        job.close()


def test_a_draw_is_the_same_each_time():
    one, other = drawn.drawn(7, 5), drawn.drawn(7, 5)
    assert one == other
    assert all(map(lambda a, b: a.dtype == b.dtype and (a == b).all(),
                   one.batch, other.batch))


def test_each_word_occurs_in_the_draws_that_are_usual():
    models = drawn.Draws(0, range(drawn.USUAL)).models()
    for field, words in CHOICES.items():
        for dtype in BOTH:
            assert {getattr(one.config, field) for one in models
                    if dtype in one.dtypes} == set(words), (field, dtype)
    assert {one.far for one in models} == set(drawn.CARDS)


@pytest.mark.parametrize("form", ["readable", "fast"])
def test_a_form_is_asked_for_the_steps_that_it_keeps(form):
    """A fast one goes over blocks where tokens are many, and keeps none."""
    models = drawn.Draws(0, range(drawn.USUAL)).models()
    steps = {one.far: case.kind != "outputs" for one in models
             for case in one.cases(form) if case.name == "forward"}
    assert [far for far, seen in steps.items() if not seen] == (
        ["target"] if form == "fast" else [])


@pytest.mark.long(24)
@pytest.mark.parametrize("wrong", [*SIX, *OTHERS])
def test_an_edit_is_noticed_by_the_draws_that_are_usual(wrong):
    usable("torch")
    with planted(*(SIX | OTHERS)[wrong]):
        assert divergence(drawn.Draws(0, range(drawn.USUAL)))


def test_a_failing_draw_is_run_again_by_its_line():
    usable("torch")
    line = "check", "--draw", "0:3", "--port", "torch"
    done = invoke(*line)
    assert done.exit_code == 0 and "drawn 0:3" in done.output
    with planted(*SIX["padding's id is 0"]):
        done = invoke(*line)
    assert done.exit_code == 1
    assert f"Run it again: parity {' '.join(line)}" in done.output
    done = invoke("check", "--draw", "3", "--port", "torch")
    assert done.exit_code == 2 and "give a seed and a number" in done.output


@pytest.mark.long(8)
@pytest.mark.parametrize("wrong, draw, cause", [
    ("GELU by tanh", "0:0", "gelu by tanh, not exact (feed_forward,"),
    ("β₁ of 0", "0:4", "not identified (training,")])
def test_the_cause_of_a_failing_draw_is_named(wrong, draw, cause):
    usable("torch")
    with planted(*(SIX | OTHERS)[wrong]):
        done = invoke("check", "--draw", draw, "--port", "torch")
    assert f"Cause: {cause}" in " ".join(done.output.split())


#: Drawn models in which rounding was called a divergence, and why: scores of
#: probabilities near 1, scores in the middle of two numbers of float32,
#: gradients of 24 layers, and means behind a norm.
ALARMS = ("108:12", "138:10", "8:8", "109:13", "167:7", "392:8", "1360:0",
          "521:9", "1355:11")


@pytest.mark.long(8)
@pytest.mark.parametrize("draw", ALARMS)
def test_rounding_is_no_divergence(draw):
    usable("torch")
    assert invoke("check", "--port", "torch", "--draw", draw).exit_code == 0


def test_rounding_hides_no_fault():
    """Where gradients move most, a millionth of one kernel's is seen."""
    model = drawn.drawn(8, 8)
    model = dataclasses.replace(
        model, config=model.config.replace(dropout=0.75))
    truth = Reference(model.config, model.weights, "float64").truth(
        model.gradients)
    assert truth.limit("all weights", "float64") == 1e-10
    wrong = truth.steps | {
        name: array * (1 + 1e-6) for name, array in truth.steps.items()
        if name.endswith("decoder.layers.0.feed_forward.inner.kernel")}
    found = [name for name, difference in compare_steps(
        wrong, truth, "float64").items() if difference.verdict == DIVERGENCE]
    assert found == ["grad decoder.layers.0.feed_forward.inner.kernel"]


def test_a_mask_of_ones_own_is_no_inverse():
    """Of a row that its own mask would leave padding alone."""
    batch = drawn.drawn(1360, 0).batch
    usual = batch.source != 10
    assert (batch.source_mask[:, 0, 0] & usual).any()


def test_no_weights_are_near_a_tie():
    """Those that follow from the draw's number first are."""
    model = drawn.drawn(138, 10)
    config = model.config.replace(softmax_rounding="float32")
    exact, _ = kinks.suited(config, [model.forward], "float64", [model.weights])
    assert kinks.near_a_tie(exact.exact, model.forward)
    assert not kinks.near_a_tie(
        kinks.Reference(model.config, model.weights, "float64").exact,
        model.forward)


@pytest.mark.parametrize("refused, seed, number", [
    (kinks.is_dead, 521, 9),
    pytest.param(kinks.is_unsteady, 1355, 11, marks=pytest.mark.long(8))])
def test_gradients_are_not_zero_and_of_some_accuracy(refused, seed, number):
    """Those of the weights that follow first from the draw's number are."""
    model = drawn.drawn(seed, number)
    first = model._drawn_weights(seed * 2**32 + number)
    for weights, expected in (first, True), (model.weights, False):
        assert expected == refused(kinks.Reference(
            model.config, weights, "float64"), model.gradients)
