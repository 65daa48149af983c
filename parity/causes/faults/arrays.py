"""What goes wrong with an array: in its layout, its order, its dtype."""

import ml_dtypes
import numpy as np

from parity.causes.cause import ANY, ARRAYS, Cause
from parity.causes.faults.putting import made_with, named_by, weights_by

#: What is said where a cause stands for others that are put.
LAYER_BY_LAYER = "a port has it in one of its layers, as causes below name it"

#: How one array stands to another.
ORDER = "the same numbers in another order"
REVERSED = "with its columns in reverse order"
GROUPED = "grouped by feature"
MULTIPLE = "times as large"
SHIFTED = "all larger or smaller by one number"
DIFFERENT = "different"


def of_attention(which, leaf="kernel"):
    """Whether a name ends so, of an attention's projection."""
    return lambda name: name.endswith(f"{which}.{leaf}") and (
        "attention" in name or name.count(".") == 1)


def ends(*words):
    """Whether a name ends in one of these."""
    return lambda name: name.endswith(words)


def without(is_chosen, value=0.0):
    """Arrays whose name is chosen are left at a constant."""
    return named_by(
        is_chosen, lambda array, config: np.full_like(array, value))


def transposed(which):
    """One square kernel of every attention, the other way round."""
    return named_by(of_attention(which), lambda array, config: array.T)


def rounded_to(is_chosen, dtype):
    """Arrays that passed through a lower dtype on their way."""
    return named_by(is_chosen, lambda array, config: (
        array.astype(dtype).astype(array.dtype)))


def moved(moves):
    """Each projection's arrays taken from another: {projection: other}."""
    def change(config, weights):
        arrays = {}
        for name in weights:
            parts = name.split(".")
            if len(parts) > 1 and parts[-2] in moves:
                parts[-2] = moves[parts[-2]]
            arrays[name] = weights[".".join(parts)]
        return config, arrays
    return made_with(change)


def by_feature(array, heads):
    """Columns grouped by feature, not by head."""
    shape = *array.shape[:-1], heads, array.shape[-1] // heads
    return array.reshape(shape).swapaxes(-1, -2).reshape(array.shape)


def grouped(*which):
    """Projections whose heads are grouped by feature; "output" by its rows."""
    def change(name, array, config):
        for one in which:
            if of_attention(one)(name) and one == "output":
                return by_feature(array.T, config.n_heads).T
            if one != "output" and (of_attention(one)(name)
                                    or of_attention(one, "bias")(name)):
                return by_feature(array, config.n_heads)
        return None
    return weights_by(change)


def shared_layers(config, weights):
    """Every layer of a stack given the first one's arrays."""
    arrays = {}
    for name in weights:
        parts = name.split(".")
        if "layers" in parts:
            parts[parts.index("layers") + 1] = "0"
        arrays[name] = weights[".".join(parts)]
    return config, arrays


def _any(name, sentence, value):
    """A Cause of whatever array, which two of them show by themselves."""
    return Cause(name, "arrays", sentence, (ARRAYS,), {ANY: value},
                 not_put=LAYER_BY_LAYER)


ALONE = "single_head_attention"


def _projections():
    """What happens to an attention's kernels and biases."""
    names = "query", "key", "value", "output"

    def of(name, sentence, put, which, settings, case=ALONE):
        return Cause(
            name, "attention", sentence, ("attention",), settings, put=put,
            case="self_attention" if which == "output" else case, step=which)
    for which in names:
        yield of(f"{which} kernel transposed", f"W_{which[0].upper()} is "
                 "stored as [out, in] and read as [in, out].",
                 transposed(which), which, {which: "transposed"})
    for first, second in (("query", "key"), ("query", "value"),
                          ("key", "value")):
        yield of(f"{first} and {second} swapped", "Each has the other's "
                 "kernel.", moved({first: second, second: first}), first,
                 {f"{first} and {second}": "swapped"})
    yield of("query, key and value packed in another order",
             "They are cut out of one array in the order key, value, query.",
             moved({"query": "key", "key": "value", "value": "query"}),
             "query", {"query, key and value": "in another order"})
    for which in names:
        yield of(f"{which}'s heads grouped by feature",
                 f"{'Rows' if which == 'output' else 'Columns'} of its kernel "
                 "are in the order of features, not of heads.",
                 grouped(which), which, {which: GROUPED})
    yield of("all heads grouped by feature", "A row is cut into features of "
             "all heads, not into heads of all features.", grouped(*names),
             "query", {"grouping": "feature by feature"})
    for which in ("query", "value", "output", "key"):
        yield of(f"{which}'s bias missing", f"b_{which[0].upper()} is 0.",
                 without(of_attention(which, "bias")), which,
                 {f"{which} bias": "ignored"}, "self_attention")
    yield of("all biases missing", "The four projections are made without.",
             without(lambda name: any(
                 of_attention(which, "bias")(name) for which in names)),
             "query",
             {f"{which} bias": "ignored" for which in names},
             "self_attention")


def _dtypes():
    """Arrays that passed through a lower dtype."""
    for dtype in (np.float32, ml_dtypes.bfloat16):
        title = np.dtype(dtype).name
        yield Cause(f"weights that passed through {title}", "dtype",
                    f"Every weight was rounded to {title}.",
                    ("attention", "linear", "norm", "embedding", ARRAYS),
                    {ANY: f"rounded to {title}"},
                    put=rounded_to(lambda name: True, dtype),
                    case="token_embedding", step="embedded")
        yield Cause(f"value's kernel passed through {title}", "dtype",
                    f"W_V alone was rounded to {title}.", ("attention",),
                    {"value": f"rounded to {title}"},
                    put=rounded_to(of_attention("value"), dtype), case=ALONE,
                    step="value")
    for title in "bfloat16", "float16", "float32":
        yield Cause(f"a result in {title}", "dtype", f"Every number of a "
                    f"step is one that {title} can hold.",
                    ("norm", "linear", "embedding", "attention",
                     "activation", "position encoding", ARRAYS),
                    {"result": f"numbers of {title}"}, not_put="each "
                    "framework rounds in an order of its own, which the "
                    "reference cannot repeat")


def _biases():
    """Biases of linear layers, which are told apart by their paths alone."""
    for which, step in (("inner", "inner"), ("outer", "output")):
        yield Cause(f"{which} bias of the network missing", "feed-forward",
                    f"b of the {which} layer is 0.", put=without(
                        ends(f"{which}.bias")), case="feed_forward",
                    step=step, not_explained=TOLD)
    yield Cause("projection's bias missing", "output", "The logits' bias is "
                "0.", put=without(
                    lambda name: name in ("projection.bias", "bias")),
                case="projection", step="logits", not_explained=TOLD)


TOLD = "it is told as “a bias missing” of the layer at that path"

LINEAR = "linear", "convolution"

CAUSES = (
    *_projections(), *_biases(), *_dtypes(),
    Cause("every layer has the first one's weights", "layers",
          "One layer is made and repeated.", put=made_with(shared_layers),
          case="encoder", step="output", not_explained="each parameter is "
          "told as different, layer by layer"),
    Cause("a bias missing", "arrays", "b is 0, or not there.", LINEAR,
          {"bias": "ignored"}, not_put=LAYER_BY_LAYER),
    Cause("a kernel transposed", "arrays", "A square W is stored as "
          "[out, in] and read as [in, out].", ("linear",),
          {"kernel": "transposed"}, not_put=LAYER_BY_LAYER),
    _any("an array transposed", "Its axes are in another order.",
         "transposed"),
    _any("an array left at zero", "It is not loaded.", "zero"),
    _any("an array left at one", "It is not loaded.", "one everywhere"),
    _any("an array missing", "Only one of the models has it.", "missing"),
    _any("columns in reverse order", "The last axis is reversed.",
         REVERSED),
    _any("an array in another order", "The same numbers at other indices.",
         ORDER),
    _any("a constant factor", "Every number is multiplied by one factor.",
         MULTIPLE),
    _any("a constant summand", "One number is added to every number, such as "
         "the 1 of a norm's scale that is stored less 1.", SHIFTED),
    _any("another array", "Nothing is known of how it was made.",
         DIFFERENT),
)
