"""The exercises of lesson 11: search and cache."""

import numpy as np

from parity.ports import module_of
from parity.check.cases import values
from parity.course.exercise import Exercise

log_softmax = module_of("numpy", "projection").log_softmax
softmax = module_of("numpy", "attention").softmax

VOCAB = 7


def language(number, eos, bias=0.0):
    """A function of the tokens so far: log p of each next one, [V]."""
    table = 3 * values(f"exercise 11.1 {number}", VOCAB, VOCAB)
    table[:, eos] += bias

    def next_log_probs(tokens):
        return log_softmax(table[tokens[-1]] + 0.1 * table[len(tokens) % 7])
    return next_log_probs


def to_search():
    """(next_log_probs, bos, eos, most)."""
    return [(language(number, eos, bias), bos, eos, most)
            for number, (bias, bos, eos, most) in enumerate((
                (0.0, 1, 2, 6), (4.0, 1, 2, 8), (-9.0, 0, 5, 5),
                (2.0, 3, 4, 9), (99.0, 6, 0, 4), (0.0, 2, 2, 6)))]


def greedy(next_log_probs, bos, eos, most):
    """The most likely token, one after the other, with bos and eos."""
    tokens = [bos]
    while len(tokens) <= most and (tokens[-1] != eos or len(tokens) == 1):
        tokens.append(int(np.argmax(next_log_probs(tokens))))
    return tokens


def beyond_the_end(next_log_probs, bos, eos, most):
    """The same, without an end."""
    tokens = [bos]
    while len(tokens) <= most:
        tokens.append(int(np.argmax(next_log_probs(tokens))))
    return tokens


def from_the_bos(next_log_probs, bos, eos, most):
    """The model is asked after the bos alone, each time."""
    return greedy(lambda tokens: next_log_probs([bos]), bos, eos, most)


def hypotheses():
    """(alive [W], log_probs [W V], count)."""
    for number, (w, vocab) in enumerate(((2, 5), (4, 9), (1, 6))):
        log_probs = log_softmax(2 * values(f"exercise 11.2 {number}", w,
                                           vocab))
        alive = -np.abs(values(f"exercise 11.2 alive {number}", w))
        yield alive, log_probs, 2 * w
    yield np.array([0.0, -np.inf, -np.inf]), log_softmax(
        values("exercise 11.2 first", 3, 6)), 4
    yield (np.array([-2.0, -1.0, -1.0]),  # many are equal
           log_softmax(np.tile([1.0, 0.0, 1.0, 0.0, 1.0], (3, 4))), 21)


def best(alive, log_probs, count):
    """The best continuations: scores, parents and tokens, [count] each."""
    candidates = (alive[:, None] + log_probs).ravel()
    places = np.argsort(-candidates, kind="stable")[:count]
    return (candidates[places], places // log_probs.shape[1],
            places % log_probs.shape[1])


def later_of_equals(alive, log_probs, count):
    """The same, of equals the last first."""
    candidates = (alive[:, None] + log_probs).ravel()
    places = np.argsort(candidates, kind="stable")[::-1][:count]
    return (candidates[places], places // log_probs.shape[1],
            places % log_probs.shape[1])


def of_each(alive, log_probs, count):
    """As many of every hypothesis, whatever the others have."""
    share = -(-count // len(alive))
    rows = [best(alive[[row]], log_probs[[row]], share)
            for row in range(len(alive))]
    scores = np.concatenate([row[0] for row in rows])[:count]
    tokens = np.concatenate([row[2] for row in rows])[:count]
    return scores, np.repeat(np.arange(len(alive)), share)[:count], tokens


def sequences():
    """(x [T D], places [T D], w_q, w_k, w_v [D D])."""
    for t, d in ((1, 4), (4, 6), (7, 3)):
        yield tuple(values(f"exercise 11.3 {name} {t}", rows, d)
                    for name, rows in (("x", t), ("p", t), ("q", d), ("k", d),
                                       ("v", d)))


def written(x, places, w_q, w_k, w_v, first=False, lost=False, ahead=False):
    """Causal attention of a single head over all of a sequence at once."""
    x = x + (places[:1] if first else places)
    scores = (x @ w_q) @ (x @ w_k).T / np.sqrt(x.shape[1])
    visible = np.eye(len(x), dtype=bool) if lost else np.tri(
        len(x), dtype=bool)
    visible = np.ones_like(visible) if ahead else visible
    return softmax(np.where(visible, scores, -1e30)) @ (x @ w_v)


def mistaken(**mistakes):
    """The same with some mistakes."""
    return lambda *arguments: written(*arguments, **mistakes)


EXERCISES = (
    Exercise(
        "11.1", "greedy", to_search, greedy,
        {"a target goes on after its end": beyond_the_end,
         "the model reads the bos alone, not what was written":
             from_the_bos}),
    Exercise(
        "11.2", "best", lambda: list(hypotheses()), best,
        {"each hypothesis is given its share, where all compete with all":
             of_each,
         "the scores of the hypotheses are not added": lambda alive, p, n: (
             best(0 * np.nan_to_num(alive, neginf=0), p, n)),
         "of equals the later comes first, where the lower parent and then "
         "the lower token should": later_of_equals}),
    Exercise(
        "11.3", "write", lambda: list(sequences()), written,
        {"nothing is repaired yet": mistaken(first=True, lost=True),
         "with the cache every token stands at position 0":
             mistaken(first=True),
         "the cache holds the last token alone: the earlier ones are "
         "overwritten": mistaken(lost=True),
         "later tokens are attended to": mistaken(ahead=True)}),
)
