"""What goes wrong between the projections of an attention."""

import math

import ml_dtypes
import numpy as np

from parity.causes.cause import BETWEEN, OTHER, Cause
from parity.causes.faults.arrays import ALONE
from parity.causes.faults.putting import (
    all_of, by_numpy, configured, module_of, native_of, numpy_of, replaced,
    tabled)
from parity.causes.formulas.scores import (
    BEHIND, OURS, SCALES, UNCAPPED, weighed)
from parity.numerics.softmax import softmax

#: d_model of the preset in which the scale shows.
WIDTH = 48


class Math:
    """``math`` with another root."""

    pi = math.pi

    def __init__(self, sqrt):
        self.sqrt = sqrt


def root_is(file, root):
    """Another root wherever a file takes one."""
    return replaced(file, "math", lambda old, port: Math(root))


def root_of_heads_is(root):
    """Another root of d_k, in attention of one head and of many."""
    return all_of(root_is("attention", root), root_is("single_head", root))


def weighed_by(function):
    """Replace the masked softmax by ``function(scores, mask)``."""
    def make(old, port):
        made = by_numpy(lambda scores, mask: function(
            scores, np.broadcast_to(mask, scores.shape)))(None, port)
        if port == "keras":
            return lambda self, scores, mask: made(scores, mask)
        return staticmethod(made)
    return all_of(
        replaced("attention", "MultiHeadAttention.softmax", make),
        tabled("dialects.attention", "SOFTMAXES", lambda old, port: {
            "none": by_numpy(lambda scores, mask: function(
                scores, np.broadcast_to(mask, scores.shape)))(None, port)}))


def infinitely_low(scores, mask):
    """-∞ where hidden; rows that come out as NaN are set to 0."""
    with np.errstate(invalid="ignore"):
        weights = softmax(np.where(mask, scores, -np.inf))
    return np.nan_to_num(weights, nan=0.0)


def in_two_halves(scores, mask):
    """Softmax as fused kernels have it: half the keys, then the others."""
    scores = np.where(mask, scores, np.finfo(scores.dtype).min)
    half = max(1, scores.shape[-1] // 2)
    highest = scores[..., :half].max(-1, keepdims=True)
    sums = np.exp(scores[..., :half] - highest).sum(-1, keepdims=True)
    new = np.maximum(highest, scores.max(-1, keepdims=True))
    rest = np.exp(scores[..., half:] - new).sum(-1, keepdims=True)
    sums = sums * np.exp(highest - new) + rest
    return np.where(mask, np.exp(scores - new) / sums, 0)


def in_single(scores, mask):
    """The softmax in float32."""
    low = scores.astype(np.float32)
    return weighed(low, mask, OURS).astype(scores.dtype)


def in_half(scores, mask):
    """The softmax in bfloat16."""
    low = scores.astype(ml_dtypes.bfloat16).astype(np.float32)
    return weighed(low, mask, OURS).astype(ml_dtypes.bfloat16).astype(
        scores.dtype)


def some_dropped(scores, mask):
    """A tenth of the weights is 0, the rest is larger."""
    weights = weighed(scores, mask, OURS)
    keep = (np.arange(weights.size) * 7919 % 10 != 0).reshape(weights.shape)
    return weights * keep / 0.9


ATTENTION = "attention", "attention without projections"

UNREPEATED = ("each framework rounds in an order of its own, which no replay "
              "repeats; told is that numbers were rounded to float32")


def of_weights(name, sentence, function=None, settings=(), also=(), **more):
    """The Cause of an attention whose weights are others.

    Args:
        function: of scores and mask, where the formula has none of it.
        settings: of the formula, by which it is recognised too.
        also: settings of ours that do not go with these.
    """
    settings = dict(settings)
    function = function or (lambda scores, mask: weighed(
        scores, mask, OURS | settings | dict(also)))
    return Cause(name, "attention", sentence,
                 ATTENTION if settings else (), settings,
                 put=weighed_by(function), case="self_attention",
                 step="weights", **more)


def scored(word):
    """Scores multiplied otherwise.

    Where one head is as wide as the model there is nothing to confuse, so
    that it keeps its own root unless the width is not what is wrong.
    """
    alone = "d_model" not in word and "heads" not in word
    return root_of_heads_is(lambda size: (
        1 / SCALES[word](size, WIDTH) if alone or size < WIDTH
        else math.sqrt(size)))


def _scaled():
    for word, name, sentence, case in (
            ("1/√d_model", "scores over √d_model",
             "The root is of the whole width.", "self_attention"),
            ("1", "scores not divided", "Q Kᵀ without its divisor.", ALONE),
            ("1/d_k", "scores over d_k", "The root is not taken.", ALONE),
            ("√d_k", "scores times √d_k", "Q Kᵀ · √d_k.", ALONE),
            ("1/d_model", "scores over d_model", "The divisor is the whole "
             "width.", "self_attention"),
            ("1/√heads", "scores over √heads", "The root is of the number of "
             "heads.", "self_attention")):
        yield Cause(name, "attention", sentence, ATTENTION, {"scale": word},
                    put=scored(word), case=case, step="scores")


def _of_sizes():
    """Another divisor in models whose config says otherwise than the paper."""
    yield Cause("scores divided that are not", "attention", "Q Kᵀ / √d_k, "
                "where the kernels were made for Q Kᵀ, as in T5.", ATTENTION,
                {"scale": "1/√d_k"}, {"scale": "1"},
                put=configured(attention_scale="root"), case="self_attention",
                step="scores", changes={"attention_scale": "none"})
    yield Cause("scores times another number", "attention", "Q Kᵀ is scaled by "
                "what a config says, and not by the usual root.", ATTENTION,
                {"scale": OTHER}, not_put="a config of ours has the root, or "
                "no divisor")
    yield Cause("scores over √(d_model / heads)", "attention", "The root is of "
                "a width that heads do not have.", put=root_is(
                    "attention", lambda size: math.sqrt(
                        WIDTH / 6 if size < WIDTH else size)),
                case="self_attention", step="scores", changes={"d_head": 10},
                not_explained="d_model is not known of what was projected")


def shared_by(function):
    """Give heads of keys and values to others: ``function(x, times)``."""
    return replaced("dialects.attention", "shared", lambda old, port: (
        lambda x, times: native_of(port, np.ascontiguousarray(function(
            numpy_of(port, x), times)))))


GROUPED = {"n_kv_heads": 3}

def _shared():
    """Heads of keys and values given to other heads of queries."""
    for name, sentence, word, function in (
            ("shared heads in turn", "Head h has key h mod G, not h // (H / "
             "G).", "in turn",
             lambda x, times: np.concatenate([x] * times, axis=1)),
            ("shared heads in reverse", "The last heads of queries have the "
             "first key.", "in reverse", lambda x, times: np.repeat(
                 x[:, ::-1], times, axis=1)),
            ("every head has the first key", "All share one, as if G were 1.",
             "the first", lambda x, times: np.repeat(
                 x[:, :1], times * x.shape[1], axis=1))):
        yield Cause(name, "attention", sentence, ATTENTION,
                    {"shared heads": word}, put=shared_by(function),
                    case="self_attention", step="scores", changes=GROUPED)


ROUNDED = {"softmax_rounding": "float32", "attention_bias": "none"}


def _unrounded():
    """Less rounded to float32 than should be."""
    def scores_exact(old, port):
        rounded = module_of(port, "dialects.attention").in_float32
        softmax = module_of(port, "attention").masked_softmax
        return {"float32": lambda scores, mask: rounded(softmax(scores, mask))}
    for name, sentence, put in (
            ("softmax not rounded", "Neither scores nor weights are rounded "
             "to float32, as T5 and Llama round them.",
             configured(softmax_rounding="none")),
            ("scores not rounded", "Only weights are rounded to float32.",
             tabled("dialects.attention", "SOFTMAXES", scores_exact))):
        yield Cause(name, "attention", sentence, put=put,
                    case="self_attention", step="weights", changes=ROUNDED,
                    not_explained=UNREPEATED)


CAPLESS = "our model caps no scores"


def _capped():
    """c tanh(s / c), as Gemma 2 has it."""
    for name, sentence, of, setting, value in (
            ("no soft cap", "c tanh(s / c) is left out, of scores or of "
             "logits.", (*ATTENTION, BETWEEN), "soft cap", UNCAPPED),
            ("another soft cap", "c tanh(s / c) with another c, or where none "
             "belongs.", (*ATTENTION, BETWEEN), "soft cap", OTHER),
            ("a soft cap after the mask", "A hidden score is then -c, not "
             "-∞.", ATTENTION, "soft cap's place", BEHIND)):
        yield Cause(name, "attention", sentence, of, {setting: value},
                    not_put=CAPLESS)


HIDDEN, EMPTY = "hidden scores", "a query that sees nothing"
NAN = {EMPTY: "gives NaN"}  # nothing is done about it

NO_HEADS = ("Keras' own layer has heads as an axis of its kernels, and nothing "
            "to cut or to merge")

CAUSES = (
    *_scaled(), *_of_sizes(), *_shared(), *_unrounded(), *_capped(),
    of_weights("softmax over queries", "Weights of one key add up to 1.",
               settings={"softmax over": "queries"}),
    of_weights("softmax over heads", "Weights of one query and one key add up "
               "to 1.", settings={"softmax over": "heads"}),
    of_weights("softmax in float32", "Scores are rounded to float32 first.",
               in_single, not_explained=UNREPEATED),
    of_weights("softmax in bfloat16", "Scores are rounded to bfloat16 first.",
               in_half, not_explained=UNREPEATED),
    of_weights("weights masked after the softmax", "The weights that "
               "remain in a row do not add up to 1.", also=NAN,
               settings={HIDDEN: "are hidden after the softmax"}),
    of_weights("a hidden score is only 10 lower", "Hidden keys still "
               "have small weights.", also=NAN, settings={HIDDEN: "less 10"}),
    of_weights("a hidden score is 1e-9", "1e-9 is written for -1e9.",
               also=NAN, settings={HIDDEN: "are 1e-9"}),
    of_weights("a hidden score is 0", "The score is multiplied by the mask.",
               also=NAN, settings={HIDDEN: "are 0"}),
    of_weights("a query that sees nothing spreads its weight evenly",
               "Every hidden score is one number, such as -1e9.",
               settings={EMPTY: "gives the values' mean"}),
    of_weights("a query that sees nothing keeps its scores' order",
               "-1e9 is added, which leaves some of their digits.",
               settings={EMPTY: "sees everything, less 1e9"}),
    of_weights("a query that sees nothing sees everything", "A number is "
               "added to every score of a row.",
               settings={EMPTY: "sees everything"}),
    of_weights("dropout of the weights left on", "A tenth of the weights "
               "are 0, and the rest are larger.", some_dropped, not_explained=(
                   "which weights were dropped is not known from later steps")),
    of_weights("a hidden score is -∞, and rows of NaN are set to 0",
               "The same numbers by another way.", infinitely_low,
               equivalent="exp(-∞) and exp of the lowest finite number are "
               "both 0, and a fully masked row has weights 0 either way"),
    of_weights("softmax over half of the keys, then the others",
               "The same numbers by another way.", in_two_halves,
               equivalent="sums of exponentials are shifted to the new maximum "
               "and added, which is the same sum"),
    Cause("another number of heads", "attention", "Rows are cut into more "
          "heads, or fewer.", ATTENTION, {"heads": OTHER},
          put=configured(n_heads=4), case="self_attention", step="query"),
    Cause("heads cut out of time and features", "attention",
          "reshape(batch, heads, time, d_k) without a transpose.", ATTENTION,
          {"grouping": "cut out of time and features"}, not_put=NO_HEADS),
    Cause("heads not moved back", "attention", "reshape(batch, time, d_model) "
          "without a transpose.", ATTENTION, {"merging": "not moved back"},
          not_put=NO_HEADS),
)
