"""Two training runs beside each other: what differs first, and why."""

import dataclasses
import json
import textwrap

import pytest
import torch
import typer
from torch import nn
from typer.testing import CliRunner

import parity
from benchmarks.training_steps.judge import judged
from benchmarks.training_steps.pair import pairs
from benchmarks.training_steps.torch_groups import halves, times
from benchmarks.training_steps.torch_parts import (
    batches, by_hand, looped, net, regression, tensors)
from parity_io.errors import InputError
from parity.commands import compare as commands
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.training import losses, rules
from parity.training.writing import writing

APP = typer.Typer()
APP.command()(commands.compare)
APP.command("other")(commands.dump)

#: Of the bench those that are quick, each of another kind.
SAMPLE = ("eps_of_keras", "eps_before_correction", "no_bias_correction",
          "schedule_early", "clipping_each", "parameter_left_out",
          "other_seed", "padding_counted", "mean_of_means",
          "accumulated_means", "dropout_active", "evaluation_mode",
          "biased_variance", "fused", "adamw_by_hand", "clipping_by_hand",
          "accumulated_rightly", "sum_with_a_smaller_rate",
          "loss_with_a_constant", "other_order_of_parameters",
          "second_half_summed", "halves_weighed_unlike",
          "zeroed_before_each_half", "never_zeroed", "last_row_left_out",
          "biases_never_moved", "biases_at_another_rate",
          "biases_not_decayed", "divided_after_the_backward_passes",
          "padding_counted_in_a_loop", "tying_lost", "tied_by_mistake",
          "gathered_in_a_loop", "rates_of_groups_exchanged",
          "clipped_too_early", "clipped_too_early_where_no_limit_acts",
          "teacher_of_another_decay", "teacher_by_lerp")


def adam(parameters):
    return torch.optim.Adam(parameters, 1e-2)


@pytest.mark.parametrize("pair", [
    each for each in pairs() if each.name in SAMPLE], ids=lambda x: x.name)
def test_a_sample_of_the_bench(pair):
    made = judged(pair)
    assert "crash" not in made.marks, made.told
    if pair.sound:
        assert made.marks == {"sound pairs"}, made.told
    else:
        assert {"found", "step", "quantity", "cause right"} <= made.marks, (
            made.told)


def test_what_a_card_says():
    made = parity.diff_training(regression(adam), regression(
        lambda p: torch.optim.Adam(p, 1e-2, eps=1e-7)))
    assert (made.verdict, made.status) == (DIVERGENCE, 1)
    text = str(made)
    assert "1 cause, proved · step 1, weights" in text
    assert "1e-08" in text and "1e-07" in text and "write" in text
    assert made.causes[0].proof and "test_training_steps.py:" in text
    assert json.dumps(made.as_json())


def test_a_loss_that_differs_a_little():
    """Gradients that are nearly a's are exchanged, and count all the same."""
    made = parity.diff_training(regression(adam), regression(
        adam, lambda y, t: 1.001 * ((y - t)**2).mean()))
    assert made.verdict == DIVERGENCE and made.causes[0].quantity == "loss"


@pytest.mark.long
def test_a_scaler_that_does_not_unscale_before_the_clipping():
    def training(unscaled):
        def make():
            model = net()
            own = torch.optim.SGD(model.parameters(), 1e-2)
            scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

            def loop():
                for x, target in map(tensors, batches()):
                    own.zero_grad()
                    scaler.scale(((model(x) - target)**2).mean()).backward()
                    if unscaled:
                        scaler.unscale_(own)
                    nn.utils.clip_grad_norm_(model.parameters(), 0.05)
                    scaler.step(own)
                    scaler.update()
            return model, loop
        return make
    for sides in ((True, False), (False, True)):
        cause, = parity.diff_training(*map(training, sides)).causes
        assert cause.what == "clipping before the gradients are unscaled"
        assert (cause.in_a, cause.in_b)[sides[0]] == "clipped at 0.05 first"
    assert parity.diff_training(training(True), training(True)).status == 0


def test_the_line_of_a_group():
    def of(rates):
        def make():
            model = net()
            own = torch.optim.SGD([
                {"params": model[0].parameters(), "lr": 1e-2},
                {"params": model[2].parameters(),
                 "lr": rates}], momentum=0.9)
            return parity.Training(model, nn.MSELoss(), own, [
                tensors(batch) for batch in batches()])
        return make
    cause, = parity.diff_training(of(1e-2), of(1e-3)).card().causes
    with open(__file__) as file:
        line = next(number for number, text in enumerate(file, 1)
                    if '"lr": rates}' in text)
    assert cause.place_b == f"test_training_steps.py:{line}"


def test_each_side_is_told_by_its_own_weights():
    one, two = halves(times(0.5), times(0.5)), halves(
        times(0.5), lambda squares: 0.5 * squares.sum())
    cause, = parity.diff_training(one, two).causes
    assert (cause.in_a, cause.in_b) == (
        "each batch counts 0.5, 0.5", "each batch counts 0.5, 6")
    assert cause.evidence == ("b sums the loss of batch 2 of each step, over "
                              "12 numbers.",)
    cause, = parity.diff_training(two, one).causes
    assert (cause.in_a, cause.in_b) == (
        "each batch counts 0.5, 0.5", "each batch counts 0.5, 0.04167")


@pytest.mark.parametrize("kind, known, name, value, words", [
    (rules.SGD, True, "decay_at", rules.COUPLED,
     "torch.optim.SGD(…, weight_decay=…)"),
    (rules.SGD, False, "decay_at", rules.COUPLED, "g = g + weight_decay * w"),
    (rules.ADAM, True, "decay_at", rules.DECOUPLED, "torch.optim.AdamW(…)"),
    (rules.SGD, True, "decay_at", rules.DECOUPLED,
     "w -= lr * weight_decay * w"),
    (rules.ADAM, True, "beta2", 0.99, "betas=(…, 0.99)"),
    (rules.RMSPROP, True, "beta2", 0.99, "alpha=0.99"),
    (rules.ADAM, False, "beta2", 0.99, "beta2 = 0.99"),
    (rules.ADAM, False, "corrected", True,
     "c1 = 1 - beta1**t; c2 = 1 - beta2**t"),
])
def test_what_to_write_is_in_the_optimiser_that_b_has(
        kind, known, name, value, words):
    assert writing("torch", name, value, kind, known) == words


def test_an_optimiser_of_another_model_is_refused():
    strange = changed(optimizer=adam(net().parameters()))
    with pytest.raises(InputError, match="optimiser of b, Adam, holds none"):
        parity.diff_training(regression(adam), strange)

    def loop():
        model, other = net(), net()
        own = adam(other.parameters())

        def run():
            for x, target in map(tensors, batches()):
                nn.functional.mse_loss(model(x), target).backward()
                own.step()
        return model, run
    with pytest.raises(InputError, match="Adam holds none of the model's"):
        parity.diff_training(regression(adam), loop)


def test_what_alone_is_moved_otherwise_is_said_of_an_unknown_step():
    def half_a_root(weight, gradient, kept, number):
        weight.sub_(1e-2 * (gradient if weight.ndim > 1 else
                            gradient.sign() * gradient.abs().sqrt()))
    cause, = parity.diff_training(
        regression(lambda p: torch.optim.SGD(p, 1e-2)),
        looped(by_hand(half_a_root))).causes
    assert cause.what == "" and cause.evidence == (
        "0.bias and 2.bias alone are moved otherwise.",)


def test_what_the_models_compute_otherwise():
    def normed(eps):
        return lambda: net(nn.LayerNorm(12, eps=eps))
    made = parity.diff_training(regression(adam, model=normed(1e-5)),
                                regression(adam, model=normed(1e-2)))
    cause, = made.causes
    assert (cause.what, cause.in_a, cause.in_b) == ("epsilon", "1e-05", "0.01")
    assert cause.places[1].startswith("test_training_steps.py:")


def test_a_loop_in_a_function_that_trains_by_itself():
    def make(rate):
        def made():
            model = net()
            optimizer = torch.optim.SGD(model.parameters(), rate)
            for x, target in map(tensors, batches()):
                optimizer.zero_grad()
                nn.functional.mse_loss(model(x), target).backward()
                optimizer.step()
            return model, tensors(batches()[0])[0]
        return made
    assert parity.diff_training(make(0.1), make(0.1), 4).verdict == MATCH
    made = parity.diff_training(make(0.1), make(0.2), 4)
    assert [each.what for each in made.causes] == ["learning rate"]


def test_a_difference_of_a_gradient_that_nothing_is_trained_with():
    """A model that returns its loss, without an optimiser."""
    class Step(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.net, self.factor = net(), factor

        def forward(self, x):
            return self.factor * self.net(x).square().mean()
    x = tensors(batches()[0])[0]
    made = parity.diff_training(lambda: (Step(1.0), (x,)),
                                lambda: (Step(0.96), (x,)), 1)
    assert made.verdict == DIVERGENCE
    assert [each.what for each in made.causes] == ["scale of the loss"]


def changed(**more):
    """The usual training with some fields replaced."""
    def make():
        return dataclasses.replace(regression(adam)(), **more)
    return make


def one_more(targets):
    """Targets of which the first number is another."""
    targets[0, 0] += 1
    return targets


@pytest.mark.parametrize("b, words", [
    (changed(batches=[tensors(each) for each in batches()][::-1]),
     "the same batches"),
    (changed(batches=[(x, one_more(t)) for x, t in map(
        tensors, batches())]),
     "the targets of step 1 are not the same"),
    (changed(batches=[tensors(each) for each in batches(2)]),
     "2 steps of 2 batches"),
    (changed(loss=lambda y, t: (y - t)**2), "not a number"),
    (changed(loss=lambda y, t: y.detach().mean()), "do not detach"),
    (changed(loss="mse"), "give a function"),
    (changed(loss=lambda y, t: 1 / 0),
     r"of b failed at test_training_steps.py:\d+ \(ZeroDivisionError"),
    (changed(optimizer=3), "optimizer is a int; give one"),
    (lambda: 3, "must return"), (lambda: {"net": 3}, "its names are"),
    (lambda: (nn.Linear(2, 2), 1, 2), "a tuple of 3"),
    (lambda: (3, lambda: None), "not a model"),
])
def test_refusals_say_what_to_do(b, words):
    with pytest.raises(InputError, match=words):
        parity.diff_training(regression(adam), b)


def test_what_is_dropped_at_random_is_refused():
    def make(seed):
        def made():
            model = net(nn.Dropout(0.2))
            training = dataclasses.replace(
                regression(adam)(), model=model,
                optimizer=adam(model.parameters()))
            torch.manual_seed(seed)
            return training
        return made
    with pytest.raises(InputError, match="at random"):
        parity.diff_training(make(1), make(2))


def test_a_loss_that_becomes_no_number():
    one = regression(adam)
    two = changed(loss=lambda y, t: ((y - t)**2).mean() * float("nan"))
    made = parity.diff_training(one, two)
    assert (made.verdict, made.first.quantity) == (DIVERGENCE, "loss")
    assert "The loss of b is nan in step 1." in str(made)
    with pytest.raises(InputError, match="no numbers after step 1, where"):
        parity.diff_training(two, one)


def test_an_unknown_optimiser_without_a_rate_is_compared_by_its_state():
    class Smooth(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for each in group["params"]:
                    held = self.state[each]
                    held["mean"] = held.get("mean", 0) * 0.7 + (
                        group["scale"] * each.grad.tanh())
                    each.sub_(held["mean"].sin() * 0.05)
    one, two = (regression(lambda p, scale=scale: Smooth(
        p, {"scale": scale})) for scale in (1.0, 1.1))
    assert parity.diff_training(one, one).verdict == MATCH
    made = parity.diff_training(one, two)
    assert (made.verdict, made.first.quantity, made.first.b) == (
        DIVERGENCE, "moments", "mean")


def test_an_unknown_optimiser_is_compared_by_its_numbers():
    class Sign(torch.optim.Optimizer):
        def __init__(self, parameters, rate):
            super().__init__(parameters, {"lr": rate})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for each in group["params"]:
                    each.sub_(group["lr"] * each.grad.sign()
                              * each.grad.abs().sqrt())
    one, two = (regression(lambda p, rate=rate: Sign(p, rate))
                for rate in (1e-2, 2e-2))
    assert parity.diff_training(one, one).verdict == MATCH
    made = parity.diff_training(one, two)
    assert made.verdict == DIVERGENCE and made.first.quantity == (
        "learning rate")
    assert [each.what for each in made.causes] == [""]


SCRIPT = """
import torch
from torch import nn
import parity

def make(eps=1e-8):
    torch.manual_seed(0)
    model = nn.Linear(3, 2).double()
    x = torch.linspace(-1, 1, 12).double().reshape(4, 3)
    return (model, nn.MSELoss(), torch.optim.Adam(
        model.parameters(), eps=eps), [(x, x[:, :2])] * 3)

def other():
    return make(1e-4)

def nothing():
    return 3
"""


def test_the_command(tmp_path):
    script = tmp_path / "s.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def run(*words):
        return CliRunner().invoke(APP, ["compare", *map(str, words)])
    done = run(f"{script}:make", f"{script}:make", "--train", 2)
    assert done.exit_code == 0 and "2 steps of training agree" in done.stdout
    files = tmp_path / "x.json", tmp_path / "x.html"
    done = run(f"{script}:make", f"{script}:other", "--train", 2, "--json",
               files[0], "--html", files[1])
    assert done.exit_code == 1 and "ε" in done.stdout
    assert json.loads(files[0].read_text())["causes"][0]["what"] == "ε"
    assert "running" not in files[1].read_text().lower()[:200]
    for words in ((f"{script}:nothing", "--train", 1),
                  (f"{script}:make", "--train", 0),
                  (f"{script}:make", "--train", 9),
                  (f"{script}:make", "--train", 1, "--layers", "0:1"),
                  (tmp_path, "--train", 1)):
        done = run(f"{script}:make", *words)
        assert done.exit_code == 2 and done.stderr.count("\n") == 1, words


def test_rules_are_torchs_own():
    """Each rule, replayed, against the optimiser that it is read from."""
    for optimizer in (
            lambda p: torch.optim.SGD(p, 0.1, 0.9, 0.3, 0.01),
            lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True),
            lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1,
                                       amsgrad=True),
            lambda p: torch.optim.AdamW(p, 0.1),
            lambda p: torch.optim.RMSprop(p, 0.1, momentum=0.5,
                                          centered=True),
            lambda p: torch.optim.Adagrad(p, 0.1)):
        from parity.training.torch import watched
        run = watched(regression(optimizer)(), 4)
        made = rules.replayed(
            run.rules, [each.before for each in run.steps],
            [each.gradients for each in run.steps])
        for new, record in zip(made, run.steps):
            for path, array in record.after.items():
                assert abs(new[path] - array).max() < 1e-14, run.optimizer


def test_a_formula_of_a_loss_is_not_guessed():
    """A loss that none of the formulas gives has none."""
    import numpy as np
    draw = np.random.default_rng(0)
    places = losses.Places(draw.normal(size=(6, 4)),
                           np.array([0, 1, 2, 3, 1, 2]),
                           np.array([0, 0, 0, 1, 1, 1]), np.zeros(6, int))
    assert list(losses.formulas([{losses.SAME: places}], [1.2345])) == []
    own = losses.value(losses.LossFormula(losses.CROSS), places)
    assert list(losses.formulas([{losses.SAME: places}], [own]))


def averaging(keep):
    """A training that pulls a net to an average of its own weights."""
    def make():
        model = net()
        average = [each.detach().clone() for each in model.parameters()]
        own = adam(model.parameters())

        def loop():
            for x, target in map(tensors, batches()):
                own.zero_grad()
                far = sum(((one - two)**2).sum() for one, two in zip(
                    model.parameters(), average))
                (((model(x) - target)**2).mean() + far).backward()
                own.step()
                with torch.no_grad():
                    for one, two in zip(average, model.parameters()):
                        one.lerp_(two, 1 - keep)
        return parity.Training(model, loop=loop)
    return make


def test_a_loss_that_reads_what_steps_change_is_not_called_another_loss():
    made = parity.diff_training(averaging(0.9), averaging(0.1))
    card = str(made)
    assert "step 2, loss" in card, card
    assert "The loss reads something else" in " ".join(card.split()), card


def test_groups_that_differ_unlike_are_told_one_by_one():
    pair = next(each for each in pairs()
                if each.name == "rates_of_groups_exchanged")
    one, two = parity.diff_training(*pair.make()).causes
    assert (one.in_a, one.in_b) == (two.in_b, two.in_a)
    assert one.where == "0.weight and 0.bias" and one.write == "lr=0.01"
    assert two.where == "2.weight and 2.bias" and two.write == "lr=0.001"
