"""The exercises of lessons 3 to 5: a head, masks, heads and layouts."""

import math

import numpy as np

from parity.ports import module_of
from parity.check.cases import values
from parity.course.exercise import Exercise

reference = module_of("numpy", "attention")
softmax, masked_softmax = reference.softmax, reference.masked_softmax


def projected():
    """(query [T K], key [S K], value [S K]) of several sizes."""
    for t, s, k in ((1, 1, 2), (4, 3, 6), (5, 7, 9)):
        yield tuple(values(f"exercise 3.1 {name} {t}", rows, k, scale=2.0)
                    for name, rows in (("q", t), ("k", s), ("v", s)))


def attending(divisor=math.sqrt, axis=-1):
    """Equation 1 with another divisor, or a softmax over another axis."""
    def attention(query, key, value):
        scores = query @ key.T / divisor(query.shape[-1])
        weights = softmax(scores if axis == -1 else scores.T)
        return (weights if axis == -1 else weights.T) @ value
    return attention


def of_all_scores(query, key, value):
    """Equation 1 with one softmax of the whole matrix of scores."""
    scores = query @ key.T / math.sqrt(query.shape[-1])
    return softmax(scores.ravel()).reshape(scores.shape) @ value


def divided_after(query, key, value):
    """Equation 1 whose weights are divided, in place of its scores."""
    return softmax(query @ key.T) / math.sqrt(query.shape[-1]) @ value


def large_scores():
    """(scores [.. S]): small, large, very negative, and in three axes."""
    x = values("exercise 3.2", 3, 5)
    return [(x,), (1000 * x,), (x - 5000,), (x[None] * np.array(
        [[[1.0]], [[30.0]]]),)]


def unshifted(scores):
    """The formula as it stands."""
    with np.errstate(all="ignore"):
        e = np.exp(scores)
        return e / e.sum(axis=-1, keepdims=True)


def without_nan(function):
    """A softmax whose NaN are made 0."""
    return lambda scores: np.nan_to_num(function(scores))


def over(axis):
    """A softmax over another axis, or over all at once."""
    def softmax_over(scores):
        e = np.exp(scores - scores.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)
    return softmax_over


def heads():
    """(x [T D], w_q, w_k, w_v [D D])."""
    for t, d in ((3, 4), (5, 6)):
        yield tuple(values(f"exercise 3.3 {name} {d}", rows, d) for name, rows
                    in (("x", t), ("q", d), ("k", d), ("v", d)))


def head(x, w_q, w_k, w_v):
    """A single head: scores, weights and context."""
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.T / math.sqrt(query.shape[-1])
    weights = softmax(scores)
    return scores, weights, weights @ value


#: What stands in the file that exercise 3.3 begins with.
def broken_head(x, w_q, w_k, w_v):
    """Both mistakes of exercise 3.3."""
    query, key, value = x @ w_q, x @ w_k, x @ w_v.T
    scores = query @ key.T / math.sqrt(len(x))
    weights = softmax(scores)
    return scores, weights, weights @ value


def over_root_t(x, w_q, w_k, w_v):
    """Only the divisor is wrong."""
    return broken_head(x, w_q, w_k, w_v.T)


def lengths():
    """(length,)"""
    return [(1,), (2,), (5,), (9,)]


def causal(length, off=0):
    """The causal mask, with its edge moved."""
    return np.tri(length, k=off, dtype=bool)[None, None]


def scores_and_masks():
    """(scores [B H T S], mask [B 1 T S]); a query may see nothing."""
    for number, (t, s) in enumerate(((3, 4), (6, 5))):
        scores = 3 * values(f"exercise 4.2 {number}", 2, 3, t, s)
        mask = values(f"exercise 4.2 mask {number}", 2, 1, t, s) > -0.5
        mask[0, 0, 0], mask[1, 0, 1] = True, False
        yield scores, mask
        yield 1000 * scores, mask  # -50, or -1000, is no small score here


def hidden_by(function):
    """A softmax whose scores are ``function(scores, mask)``."""
    return lambda scores, mask: softmax(function(scores, mask))


def minus_infinity(scores, mask):
    """-∞ where hidden: a row that is hidden wholly becomes NaN."""
    with np.errstate(all="ignore"):
        return softmax(np.where(mask, scores, -np.inf))


def times_infinity(scores, mask):
    """-∞ times the mask turned round is added: 0 times ∞ is NaN."""
    with np.errstate(all="ignore"):
        return softmax(scores + (1 - mask) * -np.inf)


#: How long the sequences of exercise 4.3 are.
LENGTH = 8


def model(mask):
    """A function of ids that attends by a mask; position i gives row i."""
    table, w = values("exercise 4.3", 20, 6), values("exercise 4.3 w", 6, 6)

    def run(tokens):
        x = table[tokens] + 0.1 * np.arange(len(tokens))[:, None]
        visible = mask[:len(tokens), :len(tokens)]
        return masked_softmax(x @ w @ x.T, visible) @ x
    return run


def leaking_models():
    """(run, tokens): models without a leak, and models with one."""
    sound = np.tri(LENGTH, dtype=bool)
    single = sound.copy()
    single[3, 7] = True
    late = sound.copy()
    late[5:, 6:] = True
    last = sound.copy()
    last[-2, -1] = True
    tokens = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    others = np.array([2, 7, 1, 8, 2, 8, 1])
    ends = [np.append(others, end) for end in range(20)]
    return [(model(mask), tokens) for mask in (
        sound, single, late, np.ones_like(sound),
        np.tri(LENGTH, k=1, dtype=bool), np.tri(LENGTH, k=-1, dtype=bool),
        last)] + [(model(mask), others) for mask in (single, late)] + [
        (model(last), end) for end in ends]


def first_leak(run, tokens, most=LENGTH, other=lambda ids: (ids + 1) % 20):
    """The first place whose output a later token changes; -1 if none."""
    before = run(tokens)
    for place in range(min(most, len(tokens))):
        changed = tokens.copy()
        changed[place + 1:] = other(changed[place + 1:])
        if np.abs(run(changed)[place] - before[place]).max() > 1e-9:
            return place
    return -1


def next_token_alone(run, tokens):
    """The same, of the very next token alone."""
    before = run(tokens)
    for place in range(len(tokens) - 1):
        changed = tokens.copy()
        changed[place + 1] = (changed[place + 1] + 1) % 20
        if np.abs(run(changed)[place] - before[place]).max() > 1e-9:
            return place
    return -1


def moves(run, tokens, place):
    """Which rows move when the token at a place is changed."""
    changed = tokens.copy()
    changed[place] = (changed[place] + 1) % 20
    return (np.abs(run(changed) - run(tokens)) > 1e-9).any(axis=-1)


def changed_token(run, tokens):
    """The first token that an earlier row sees, in place of that row."""
    return next((place for place in range(len(tokens))
                 if moves(run, tokens, place)[:place].any()), -1)


def first_moved(run, tokens, places=range(LENGTH)):
    """The first row that moves at all, of the first token that moves one."""
    for place in places:
        if place < len(tokens) and (
                moved := moves(run, tokens, place)).any():
            return int(moved.argmax())
    return -1


def last_token_alone(run, tokens):
    """The same as the leak, of the last token alone."""
    moved = moves(run, tokens, len(tokens) - 1)[:-1]
    return int(moved.argmax()) if moved.any() else -1


def to_split():
    """(x [B T D], heads); no two axes are of one size."""
    return [(values(f"exercise 5.1 {h}", 2, 5, h * k), h)
            for h, k in ((1, 4), (3, 4), (4, 7))]


def split(x, heads):
    """[B T D] to [B H T K]."""
    b, t, d = x.shape
    return x.reshape(b, t, heads, d // heads).swapaxes(1, 2)


def feature_by_feature(x, heads):
    """[B T D] to [B H T K], each feature of all heads together."""
    b, t, d = x.shape
    return x.reshape(b, t, d // heads, heads).transpose(0, 3, 1, 2)


def to_merge():
    """(context [B H T K],)"""
    return [(split(*one),) for one in to_split()]


def merge(context):
    """[B H T K] to [B T H·K]."""
    b, h, t, k = context.shape
    return context.swapaxes(1, 2).reshape(b, t, h * k)


def kernels():
    """(query, key, value kernels [D D], and their biases [D])."""
    for d in (3, 6):
        yield (*(values(f"exercise 5.3 {name} {d}", d, d) for name in "qkv"),
               *(values(f"exercise 5.3 b{name} {d}", d) for name in "qkv"))


def packed(query, key, value, *biases):
    """torch's in_proj_weight [3D D] and in_proj_bias [3D]."""
    return (np.concatenate([query.T, key.T, value.T]),
            np.concatenate(biases))


EXERCISES = (
    Exercise(
        "3.1", "attention", lambda: list(projected()),
        attending(),
        {"scores not divided": attending(lambda k: 1),
         "scores over d_k": attending(lambda k: k),
         "scores times √d_k": attending(lambda k: k**-0.5),
         "softmax over queries": attending(axis=-2),
         "one softmax is taken of all scores; each row has its own, whose "
         "weights have the sum 1": of_all_scores,
         "weights are divided by √d_k after the softmax; divide the scores "
         "before it": divided_after,
         "the divisor is 8, which is √d_k of the paper's sizes; here d_k is "
         "the length of a query": attending(lambda k: 8)}),
    Exercise(
        "3.2", "softmax", large_scores,
        softmax,
        {"exp of a large score is infinite, and ∞/∞ is NaN; subtract the "
         "largest score of each row first": unshifted,
         "the largest of all scores is subtracted, not that of each row":
             lambda scores: unshifted(scores - scores.max()),
         "the mean of a row is subtracted, and the largest may still be far "
         "above it": lambda scores: unshifted(
             scores - scores.mean(axis=-1, keepdims=True)),
         "NaN are made 0, where the right weights are lost already":
             without_nan(unshifted),
         "large scores are cut off, which makes unequal ones equal":
             lambda scores: unshifted(np.clip(scores, -700, 700)),
         "one softmax is taken of the whole array; each row has its own":
             over(None),
         "the sum is over the whole array; each row has its own":
             lambda scores: np.exp(
                 scores - scores.max(axis=-1, keepdims=True)) / np.exp(
                     scores - scores.max(axis=-1, keepdims=True)).sum(),
         "the softmax is over axis 0, not over the last": over(0),
         "the softmax is over axis 1, which is the last of two axes only":
             over(1)}),
    Exercise(
        "3.3", "head", lambda: list(heads()), head,
        {"query and key swapped": lambda x, q, k, v: head(x, k, q, v),
         "value kernel transposed": lambda x, q, k, v: head(x, q, k, v.T),
         "nothing is repaired yet": broken_head,
         "scores are divided by the root of the number of words, not of d_k":
             over_root_t}),
    Exercise(
        "4.1", "causal_mask", lengths, causal,
        {"causal mask off by one, to the future": lambda n: causal(n, 1),
         "causal mask off by one, to the past": lambda n: causal(n, -1),
         "no causal mask": lambda n: np.ones((1, 1, n, n), bool),
         "the mask is turned round: True must mean “may attend”":
             lambda n: ~causal(n),
         "the mask is one to be added to scores, 0 and -∞; this one is of "
         "True and False": lambda n: np.where(causal(n), 0.0, -np.inf),
         "the mask is transposed: a row is a query, a column a key":
             lambda n: causal(n).swapaxes(-1, -2)}),
    Exercise(
        "4.2", "masked_softmax",
        lambda: list(scores_and_masks()), masked_softmax,
        {"attention without its mask": lambda scores, mask: softmax(scores),
         "mask's polarity turned round in attention": lambda scores, mask: (
             masked_softmax(scores, ~mask)),
         "the mask is turned round: True is hidden, where it should let "
         "attend": hidden_by(lambda s, mask: np.where(mask, -1e9, s)),
         "0 times -∞ is NaN; choose between the two, and multiply nothing":
             times_infinity,
         "a hidden score is 0 when the rest is weighed; its exponential, 1, "
         "is in the sum": lambda scores, mask: np.where(
             mask, softmax(scores * mask), 0),
         "weights masked after the softmax": lambda scores, mask: np.where(
             mask, softmax(scores), 0),
         "a hidden score is 0": hidden_by(lambda s, mask: s * mask),
         "a hidden score is 1e-9": hidden_by(
             lambda s, mask: np.where(mask, s, 1e-9)),
         "a query that sees nothing spreads its weight evenly": hidden_by(
             lambda s, mask: np.where(mask, s, -1e9)),
         "a query that sees nothing keeps its scores' order": hidden_by(
             lambda s, mask: s + np.where(mask, 0, -1e9)),
         "a query that sees nothing becomes NaN; its weights are to be 0":
             minus_infinity}, zeros=True),
    Exercise(
        "4.3", "first_leak", leaking_models, first_leak,
        {"the place of the changed token is returned, not that of the row "
         "that sees it": changed_token,
         "only the last token is changed, and a leak from before it stays "
         "hidden": last_token_alone,
         "a row that its own token moves is taken for a leak": first_moved,
         "only the very next token is changed, and a leak from further on "
         "stays hidden": next_token_alone,
         "later tokens become 0, and one that was 0 is not changed":
             lambda run, tokens: first_leak(
                 run, tokens, other=np.zeros_like),
         "the last place but one is not looked at, which may see the last":
             lambda run, tokens: first_leak(run, tokens, len(tokens) - 2)}),
    Exercise(
        "5.1", "split", to_split, split,
        {"heads cut out of time and features": lambda x, heads: x.reshape(
            len(x), heads, x.shape[1], -1),
         "all heads grouped by feature": feature_by_feature}),
    Exercise(
        "5.2", "merge", to_merge, merge,
        {"heads not moved back": lambda context: context.reshape(
            len(context), context.shape[2], -1),
         "all heads grouped by feature": lambda context: context.transpose(
             0, 2, 3, 1).reshape(len(context), context.shape[2], -1)}),
    Exercise(
        "5.3", "packed",
        lambda: list(kernels()), packed,
        {"a kernel transposed": lambda q, k, v, *b: packed(
            q.T, k.T, v.T, *b),
         "query, key and value packed in another order":
             lambda q, k, v, bq, bk, bv: packed(k, q, v, bk, bq, bv),
         "the three are side by side, [D 3D], where torch stores [3D D]":
             lambda q, k, v, *b: (np.concatenate([q, k, v], axis=1),
                                  np.concatenate(b))}),
)
