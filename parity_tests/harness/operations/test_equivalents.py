"""Programs that are cut otherwise, and one mistake in one of them."""

import numpy as np
import pytest

from parity.causes.proved import explanations
from parity.operations.align import NEAR
from parity.operations.equivalents import with_equivalents
from parity.operations.numpy import Runner
from parity.operations.search import find_faults

DRAWN = np.random.default_rng(0)
X = DRAWN.normal(size=(3, 6, 4))
KERNEL, AGAIN = DRAWN.normal(size=(2, 4, 12))
SHIFT, MORE = DRAWN.normal(size=(2, 12))
END = DRAWN.normal(size=(4, 5))


def told(a, b, most, inputs=(X,)):
    """The Explanations of what is found in so many runs at most."""
    one, two = Runner(a, inputs, {}), Runner(b, inputs, {})
    outcome = find_faults(one.run(exact=True), lambda edits: two.run(
        exact=True, edits=edits), NEAR, runs=150)
    assert outcome.corrected and outcome.runs <= most, outcome.runs
    return explanations(outcome)


def cell(gates, h, order=(0, 1, 2)):
    """The next state, of gates [B 12]."""
    i, f, g = (gates[:, 4 * part:4 * part + 4] for part in order)
    return np.tanh(i) * h * 0.5 + np.cos(f) * np.sin(g)


def recurrent(x, turned=True, shift=None, order=(0, 1, 2)):
    """One bias in all; with ``shift`` None two, one a product."""
    u = x @ KERNEL + (SHIFT if shift is None else shift)
    h, states = np.zeros((3, 4)), [None] * 6
    for step in range(5, -1, -1) if turned else range(6):
        more = h @ AGAIN + MORE if shift is None else h @ AGAIN
        states[step] = h = cell(u[:, step] + more, h, order)
    return np.tanh(np.stack(states, 1) @ END)


def test_a_sequence_that_is_read_from_its_other_end():
    each, = told(recurrent, lambda x: recurrent(x, False, SHIFT + MORE), 16)
    assert (each.cause, each.in_a) == (
        "direction", "from the last step to the first")
    assert each.in_b.startswith("from the first step to the last")


def test_a_bias_of_a_cell_that_is_left_out_at_every_step():
    each, = told(recurrent, lambda x: recurrent(x, True, SHIFT), 16)
    assert each.in_b == "none" and "is added" in each.in_a


def test_gates_in_another_order_at_every_step():
    each, = told(recurrent, lambda x: recurrent(
        x, True, SHIFT + MORE, (0, 2, 1)), 12)
    assert (each.cause, each.in_a) == ("order of the parts", "1, 2, 3")
    assert each.in_b.startswith("1, 3, 2 of ")


EXPERTS, BACK = DRAWN.normal(size=(3, 4, 6)), DRAWN.normal(size=(3, 6, 4))


def chosen(x):
    """Whether each token [18] chooses each of three experts, and how much."""
    scores = np.asarray(x).reshape(18, 4)[:, :3]
    return scores > np.sort(scores, -1)[:, :1], scores


def expert(rows, i, slope):
    """What one expert makes of rows."""
    h = rows @ EXPERTS[i]
    return (h * np.tanh(h * slope if slope != 1 else h)) @ BACK[i]


def by_rows(x, slope=1.7):
    """Each expert has the tokens that chose it."""
    seen, scores = chosen(x)
    rows, total = x.reshape(18, 4), np.zeros((18, 4))
    for i in range(3):
        places = np.flatnonzero(seen[:, i])
        spread = np.eye(18)[:, places] * scores[places, i]
        total = total + spread @ expert(
            np.take(rows, places, 0), i, slope)
    return np.tanh(total.reshape(3, 6, 4) + x) @ END


def by_weights(x, slope=1.7):
    """Each expert has all tokens, most of them weighed with nothing."""
    seen, scores = chosen(x)
    total = np.zeros((3, 6, 4))
    for i in range(3):
        weights = (seen * scores)[:, i].reshape(3, 6, 1)
        total = total + weights * expert(x, i, slope)
    return np.tanh(total + x) @ END


def test_a_factor_that_all_experts_lack():
    each, = told(by_rows, lambda x: by_weights(x, 1), 20)
    assert (each.cause, each.in_b) == ("factor", "none")
    assert "1.7" in each.in_a


FIRST, PLACES = DRAWN.normal(size=(1, 1, 4)), DRAWN.normal(size=(7, 4))


def joined(x, first, places, late):
    """A first token before others, and places added, before or after that."""
    first = np.broadcast_to(first, (3, 1, 4))
    if late:
        return np.tanh((np.concatenate([first, x], 1) + places) @ END)
    return np.tanh(np.concatenate([first, x + places[1:]], 1) @ END)


def test_what_was_added_to_what_was_joined():
    each, = told(lambda *x: joined(*x, True), lambda *x: joined(*x, False), 10,
                 (X, FIRST, PLACES))
    assert each.in_b == "none" and "start=0" in each.in_a


def heads(x, tiled):
    """Two heads of queries for each of keys, which are summed step by step,
    or at once where ``tiled`` is None."""
    keys, values = x[..., :2], x @ KERNEL[:, :4]
    keys = (np.repeat(keys, 2, -1) if not tiled else np.tile(keys, 2))
    if tiled is None:
        weights = np.tril(0.5 ** np.abs(np.subtract.outer(range(6), range(6))))
        return np.tanh(np.einsum("ts,bsk->btk", weights, values) * keys @ END)
    state, made = np.zeros((3, 4)), []
    for step in range(6):
        state = state * 0.5 + values[:, step]
        made.append(state * keys[:, step])
    return np.tanh(np.stack(made, 1) @ END)


def test_the_order_of_what_a_loop_reads():
    each, = told(lambda x: heads(x, None), lambda x: heads(x, True), 10)
    assert each.cause == "order" and each.in_b.endswith(
        "axis 2 is [2 2], and these exchanged")


@pytest.mark.parametrize("function", [
    recurrent, by_rows, lambda x: heads(x, None)])
def test_what_is_added_is_what_the_run_gave(function):
    program = Runner(function, (X,), {}).run(exact=True)
    values, operations = len(program.values), len(program.operations)
    more = with_equivalents(program)
    assert (values, operations) == (
        len(program.values), len(program.operations)) and not program.added
    assert more.values[:values] == program.values
    assert more.added == {*range(values, len(more.values))}
    for number, ways in more.equals.items():
        assert number < values or number in more.added
        assert all(number in more.operations[each].results for each in ways)


def test_a_value_added_to_itself_is_no_residual_connection():
    each, = told(lambda x: np.tanh(np.sin(x) @ END), lambda x: np.tanh(
        (np.sin(x) + np.sin(x)) @ END), 10)
    assert (each.cause, each.in_a) == ("summand", "none")


def test_squares_that_are_added_are_no_norm():
    def distances(x, book):
        own = (x ** 2).sum(-1, keepdims=True) - 2 * x @ book
        return own + (np.asarray(x[0, :1] @ book) ** 2).sum(0)
    each, = told(lambda x: np.tanh(distances(x, END)), lambda x: np.tanh(
        (x ** 2).sum(-1, keepdims=True) - 2 * x @ END), 99)
    assert (each.cause, each.in_b) == ("summand", "none")


def halves(h, exchanged=False):
    """One half of a value weighs the other."""
    one, two = h[..., :3], h[..., 3:]
    return np.tanh(two) * one if exchanged else np.tanh(one) * two


def for_each(x):
    """Each expert has the tokens that chose it, one expert after another."""
    seen, _ = chosen(x)
    rows, total = x.reshape(18, 4), np.zeros((18, 4))
    for i in range(3):
        places = np.flatnonzero(seen[:, i])
        total = total + np.eye(18)[:, places] @ (halves(
            np.take(rows, places, 0) @ EXPERTS[i]) @ BACK[i, :3])
    return np.tanh(total.reshape(3, 6, 4) + x) @ END


def for_all(x, exchanged):
    """All experts at once, each with all tokens."""
    seen, _ = chosen(x)
    made = halves(np.einsum("btd,edf->btef", x, EXPERTS), exchanged)
    made = np.einsum("btef,efd->bted", made, BACK[:, :3])
    return np.tanh((made * seen.reshape(3, 6, 3, 1)).sum(2) + x) @ END


def test_halves_that_all_experts_exchange_at_once():
    each, = told(for_each, lambda x: for_all(x, True), 30)
    assert (each.cause, each.in_a) == ("order of the parts", "1, 2")


def test_parts_that_are_taken_in_turn_and_one_after_another():
    def gated(x, turns):
        h = x @ KERNEL[:, :6]
        one, two = (h[..., ::2], h[..., 1::2]) if turns else (
            h[..., :3], h[..., 3:])
        return np.cos(np.tanh(one) * two @ END[:3])
    each, = told(lambda x: gated(x, True), lambda x: gated(x, False), 10)
    assert (each.cause, each.in_a, each.in_b) == (
        "order of the parts", "every 2. number from 0", "0 to 2")
