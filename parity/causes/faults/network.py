"""What goes wrong in the feed-forward network, in sums and in the output."""

import numpy as np

from parity.causes.cause import ARRAYS, BETWEEN, OTHER, Cause
from parity.causes.faults.putting import (
    all_of, by_numpy, configured, made_with, numpy_of, replaced, tabled,
    tapped, worded)
from parity.causes.formulas import activation
from parity.numerics.softmax import log_softmax, softmax

#: Modules and places where one function of an array stands.
FUNCTIONS = ("activation", "linear", "convolution", "mixture of experts",
             BETWEEN, ARRAYS)


def activated_by(function, word="relu"):
    """Another activation for a word of ACTIVATIONS.

    The paper's max(0, x) is none of them, but written out.
    """
    return all_of(
        worded("parts", "FEED_FORWARDS", "usual", "dialect"),
        tabled("dialects.feed_forward", "ACTIVATIONS", lambda old, port: {
            word: by_numpy(function)(old[word], port)}))


def of(name, sentence, value, function, word="relu", **more):
    """The Cause of an activation that is another one."""
    sound = {"gelu_tanh": "gelu by tanh"}.get(word, word)
    if word != "relu":
        more |= {"beside": {"activation": sound},
                 "changes": {"activation": word}}
    return Cause(
        name, "feed-forward", sentence, FUNCTIONS, {"activation": value},
        compute=function, put=activated_by(function, word),
        case="feed_forward", step="activated", **more)


def _activations():
    for value, sentence, function in (
            ("gelu", "x Φ(x).", activation.gelu),
            ("gelu by tanh", "jax.nn.gelu's default.", activation.gelu_tanh),
            ("gelu by sigmoid", "x σ(1.702 x).", activation.gelu_sigmoid),
            ("silu", "x σ(x).", activation.silu),
            ("sigmoid", "1 / (1 + exp(-x)).", activation.sigmoid),
            ("tanh", "tanh x.", np.tanh),
            ("softplus", "log(1 + exp(x)).", activation.softplus),
            ("mish", "x tanh(softplus(x)).",
             lambda x: x * np.tanh(activation.softplus(x))),
            ("elu", "exp(x) - 1 below 0.", lambda x: np.where(
                x > 0, x, np.expm1(np.minimum(x, 0)))),
            ("leaky relu, 0.01", "0.01 x below 0, as in torch.",
             activation.leaky(0.01)),
            ("leaky relu, 0.2", "0.2 x below 0.", activation.leaky(0.2)),
            ("leaky relu, 0.3", "0.3 x below 0.", activation.leaky(0.3)),
            ("relu6", "At most 6.", lambda x: np.clip(x, 0, 6)),
            ("relu squared", "max(0, x)².",
             lambda x: np.maximum(x, 0)**2)):
        more = {"equivalent": BELOW_6} if value == "relu6" else {}
        yield of(f"{value}, not relu", sentence, value, function, **more)
    yield of("no activation", "x.", "none", lambda x: x)
    yield of("gelu by tanh, not exact", "jax.nn.gelu's default.",
             "gelu by tanh", activation.gelu_tanh, "gelu")
    yield of("gelu exact, not by tanh", "torch's and Keras' default.",
             "gelu", activation.gelu, "gelu_tanh")
    yield of("silu, not gelu", "x σ(x) for x Φ(x).", "silu",
             activation.silu, "gelu")
    yield of("silu, not gelu by tanh", "x σ(x) for x σ(2u).", "silu",
             activation.silu, "gelu_tanh")
    yield of("gelu, not silu", "x Φ(x) for x σ(x).", "gelu",
             activation.gelu, "silu")
    yield of("gelu by sigmoid, not silu", "x σ(1.702 x) for x σ(x).",
             "gelu by sigmoid", activation.gelu_sigmoid, "silu")


def exchanged(config, weights):
    """The kernels and biases of the gate for those of the inner vector."""
    other = {"gate": "inner", "inner": "gate"}
    return config, {
        ".".join(other.get(part, part) for part in name.split(".")): array
        for name, array in weights.items()}


def gated_by(multiply):
    """``multiply(activated, inner)`` in the place of their product."""
    def make(old, port):
        def made(self, x):
            gate, inner = self.gate(x), self.inner(x)
            activated = self.activation(gate)
            gated = multiply(activated, inner, self.activation)
            steps = {"gate": gate, "inner": inner, "activated": activated,
                     "gated": gated, "output": self.outer(gated)}
            return tapped(port, self, {
                name: numpy_of(port, value) for name, value in steps.items()})
        return made
    return replaced("dialects.feed_forward", "GatedFeedForward.call", make)


def _gates():
    def of_gate(name, sentence, put, step, **more):
        return Cause(name, "feed-forward", sentence, (BETWEEN,), put=put,
                     case="feed_forward", step=step,
                     changes={"gated": True, "activation": "silu"}, **more)
    inside = "between modules only one activated value is looked for"
    yield of_gate("gate and inner kernel exchanged",
                  "f(x W₁) · (x W_g) for f(x W_g) · (x W₁).",
                  made_with(exchanged), "gate",
                  settings={"gate": "exchanged"})
    yield of_gate("gate added, not multiplied", "f(x W_g) + x W₁.",
                  gated_by(lambda a, b, f: a + b), "gated",
                  settings={"gate": "added"})
    yield of_gate("inner vector activated too", "f(x W_g) · f(x W₁).",
                  gated_by(lambda a, b, f: a * f(b)), "gated",
                  not_explained=inside)


BELOW_6 = "no number of the cases is above 6"

SOFTMAXES = ("no softmax of ours stands alone: it is told by its step, as "
             "attention's causes and the output's")


def _softmaxes():
    for name, value, function in (
            ("a softmax more", "softmax", softmax),
            ("a softmax along another axis", "softmax along another axis",
             activation.along_another_axis(softmax)),
            ("a log-softmax along another axis",
             "log-softmax along another axis",
             activation.along_another_axis(log_softmax))):
        yield Cause(name, "output", "Over the last axis, where there should "
                    "be none." if value == "softmax" else
                    "Over the last axis but one.",
                    FUNCTIONS, {"activation": value}, compute=function,
                    not_put=SOFTMAXES)


NOT_OURS = "ours adds nothing there, or by what it is given"

PRE = "before the sub-layer"
POST = "after the sum"

CAUSES = (
    *_activations(), *_gates(), *_softmaxes(),
    Cause("pre-norm, not post-norm", "residual", "x + Sublayer(norm(x)).",
          (BETWEEN,), {"norm's place": PRE}, put=configured(residual="pre"),
          case="residual", step="norm.mean"),
    Cause("post-norm, not pre-norm", "residual", "norm(x + Sublayer(x)).",
          (BETWEEN,), {"norm's place": POST}, put=configured(residual="post"),
          preset="lesson", case="residual", step="summed"),
    Cause("logits, not log-probabilities", "output", "The log-softmax is left "
          "out.", FUNCTIONS, {"activation": "none"},
          {"activation": "log-softmax"}, put=configured(output="logits"),
          preset="lesson", case="project", step="output"),
    Cause("log-probabilities, not logits", "output", "A log-softmax is added.",
          FUNCTIONS, {"activation": "log-softmax"},
          compute=log_softmax, put=configured(output="log_probs"),
          case="project", step="output"),
    Cause("no residual connection", "residual", "A sub-layer's input is not "
          "added to its output.", (BETWEEN,),
          {"residual connection": "missing"}, put=replaced(
              "residual", "Residual.call", lambda old, port: (
                  lambda self, x, *rest: old(self, x * 0, *rest))),
          case="residual", step="summed"),
    Cause("a residual connection more", "residual", "An input is added where "
          "it should not be.", (BETWEEN,),
          {"residual connection": "there"}, not_put=NOT_OURS),
    Cause("a summand missing", "residual", "Such as BERT's token types.",
          (BETWEEN,), {"summand": "missing"}, not_put=NOT_OURS),
    Cause("a summand more", "residual", "A sum has one value too many.",
          (BETWEEN,), {"summand": "there"}, not_put=NOT_OURS),
    Cause("another input", "residual", "A module is given another value.",
          (BETWEEN,), {"input": OTHER}, not_put="modules of ours are "
          "tried one by one, each on inputs that are its case's"),
    Cause("another factor", "residual", "A value is multiplied by another "
          "number.", ("activation", "linear", "embedding",
                      "position encoding", BETWEEN),
          {"factor": OTHER}, not_put="it stands for whatever factor is not "
          "listed here"),
    Cause("dropout left on", "dropout", "Random values are 0, and the rest are "
          "larger.", (BETWEEN, ARRAYS), {"dropout": "on"},
          not_put="a run of ours drops what it is told to, bit by bit; an "
          "attention's weights have a cause of their own"),
    Cause("dropout left off", "dropout", "Nothing is dropped where it should "
          "be.", (BETWEEN,), {"dropout": "off"},
          not_put="lockstep training compares the masks themselves"),
    Cause("ids a place later", "embedding", "Such as a target that is "
          "shifted once more, or has one begin token too many.", (BETWEEN,),
          {"ids": "one place later"}, not_put="the ids of a case are its "
          "inputs"),
    Cause("ids a place earlier", "embedding", "Such as a target that is not "
          "shifted to the right.", (BETWEEN,), {"ids": "one place earlier"},
          not_put="the ids of a case are its inputs"),
    Cause("ids off by a number", "embedding", "One number is added to "
          "every id.", (BETWEEN,), {"numbers": "off"},
          not_put="the ids of a case are its inputs"),
    Cause("a product in lower precision", "dtype", "Both arrays are rounded "
          "before they are multiplied.", ("linear",),
          {"product": ("TF32", "bfloat16")}, not_put="a device has to be "
          "told so; no port writes it"),
    Cause("a bias added twice", "arrays", "x W + 2 b.", ("linear",),
          {"bias": "added twice"}, not_put="a bias of ours that is twice as "
          "large is told as an array"),
)
