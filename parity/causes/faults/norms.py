"""What goes wrong in norms."""

from parity.causes.cause import BETWEEN, OTHER, PRECISION, Cause
from parity.causes.faults.arrays import ends, without
from parity.causes.faults.putting import (
    after_init, all_of, made_with, numpy_of, replaced, tapped, worded)
from parity.causes.formulas import norm

#: What may be computed in float32 inside a model in float64.
INSIDE = ("norm", "linear", "embedding", "attention", "activation",
          "position encoding", "attention without projections",
          "rotary table")

#: Epsilons that systems have.
EPSILONS = 1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 0.0, 1e-4

#: What a kind of norm is called, its class, the preset that has it, how its
#: formula is set, and how it begins up to ε.
LAYER = ("layer norm", "LayerNorm", "vaswani2017_base", norm.LAYER,
         "(x - mean) / √(variance")
RMS = ("RMS norm", "RMSNorm", "vaswani2017_base", norm.RMS,
       "x / √(mean(x²)")
DEVIATION = ("deviation norm", "StdLayerNorm", "complete", norm.DEVIATION,
             "(x - mean) / (std")

#: The steps of each kind: what we call them, and what the formula does.
NAMES = {
    **{kind: {name: name for name in (
        "mean", "centered", spread, "normalized", "output")}
       for kind, spread in ((LAYER[0], "variance"), (DEVIATION[0], "std"))},
    RMS[0]: {"mean_square": "variance", "normalized": "normalized",
             "output": "output"},
}

ROUNDING = ("what it loses is rounding, which no replay repeats; where the "
            "module says use_fast_variance, that is told")


def in_norm(kind, settings):
    """A port's norm computed by the formula with some settings changed."""
    _, cls, _, sound, _ = kind

    def make(old, port):
        names = NAMES[kind[0]]

        def made(self, x):
            bias = None if kind is RMS else numpy_of(port, self.bias)
            steps = norm.steps(
                numpy_of(port, x), numpy_of(port, self.scale), bias,
                sound | {"epsilon": self.eps} | settings)
            return tapped(port, self, {
                name: steps[step] for name, step in names.items()})
        return made
    file = "layer_norm" if kind is LAYER else "dialects.norms"
    return replaced(file, f"{cls}.call", make)


def of(kind, name, sentence, step, settings, **more):
    """The Cause of a norm that computes otherwise."""
    names = {"variance", "epsilon's place"} | (
        {"mean"} if kind is RMS else set())
    if kind is RMS:
        more = {"changes": {"norm": "rms"}} | more
    return Cause(name, "norm", sentence, ("norm",), settings,
                 {key: kind[3][key] for key in sorted(names)
                  if key not in settings}, preset=kind[2],
                 **{"put": in_norm(kind, settings), "case": "norm",
                    "step": step, **more})


def _epsilons():
    for eps in EPSILONS:
        for kind in LAYER, DEVIATION, RMS:
            more = {"put": None, "not_put": "the presets that have such a "
                    "norm have this ε"} if eps == 1e-6 else {}
            yield of(kind, f"{kind[0]}'s ε is {eps:g}",
                     f"{kind[4]} + {eps:g}).", "normalized",
                     {"epsilon": eps}, **more)


def without_final_norm(config, weights):
    """The norm that ends each stack, left out."""
    final = ("encoder.norm.", "decoder.norm.")
    return config.replace(final_norm=False), {
        name: array for name, array in weights.items()
        if not name.startswith(final) and not (
            name.startswith("norm.") and any(
                other.startswith("layers.") for other in weights))}


def _final_eps(stack, eps):
    stack.norm.eps = eps


CAUSES = (
    *_epsilons(),
    Cause("a norm's ε is another", "norm", "A number that no system has by "
          "default.", ("norm",), {"epsilon": OTHER}, not_put="it stands for "
          "whatever ε is not listed here"),
    of(LAYER, "layer norm's ε outside the root",
       "(x - mean) / (√variance + ε).", "normalized",
       {"epsilon's place": "outside the root"}),
    of(LAYER, "layer norm's variance unbiased",
       "The variance is Σ (x - mean)² / (D - 1).", "variance",
       {"variance": "over D - 1"}, factor=lambda d: (1 - 1 / d)**0.5),
    of(LAYER, "layer norm's variance as mean(x²) - mean(x)²",
       "The digits that both means share are lost, as nnx.LayerNorm has it by "
       "default.", "variance", {"variance": "mean(x²) - mean(x)²"},
       case="norm, mean 100 deviations", not_explained=ROUNDING),
    of(LAYER, "RMS norm, not layer norm", "The mean is not subtracted.",
       "centered", {"mean": "ignored"}),
    of(LAYER, "a norm's scale is stored less 1",
       "normalized · (1 + scale), for weights that are stored so.", "output",
       {"scale": "1 is added"}),
    of(LAYER, "a norm over positions too",
       "Mean and variance are of the last two axes.", "mean",
       {"axes": "last two"}),
    of(LAYER, "a norm over positions, not features",
       "Mean and variance are of the second axis.", "mean",
       {"axes": "second"}),
    of(RMS, "layer norm, not RMS norm", "The mean is subtracted.",
       "mean_square", {"mean": "subtracted"}),
    of(RMS, "RMS norm's ε outside the root", "x / (√mean(x²) + ε).",
       "normalized", {"epsilon's place": "outside the root"}),
    of(RMS, "RMS norm's scale is stored less 1",
       "normalized · (1 + scale), as Gemma has it.", "output",
       {"scale": "1 is added"}),
    of(RMS, "RMS norm's mean square over D - 1", "Σ x² / (D - 1).",
       "mean_square", {"variance": "over D - 1"},
       factor=lambda d: (1 - 1 / d)**0.5),
    Cause("RMS norm's mean square in float32", "norm",
          "mean(x²) is rounded to float32, as T5 and Llama have it.",
          put=worded("parts", "NORMS", "rms", "rms_float32"),
          preset=RMS[2], changes={"norm": "rms"}, case="norm",
          step="mean_square", not_explained="theirs is a sum in float32, "
          "whose last bit depends on its order"),
    *(Cause(f"computed {word} inside", "dtype", sentence, INSIDE,
            {PRECISION: word}, not_put="what is put is the mean square, the "
            "scores or the weights in float32") for word, sentence in (
                ("in float32", "What is in float64 outside was rounded to "
                 "float32 on the way, as norms, softmax and rotary tables of "
                 "Hugging Face, Keras and NNX are."),
                ("in float64", "Nothing was rounded to float32 on the way, "
                 "where the other model has that."))),
    of(DEVIATION, "deviation norm's ε inside the root",
       "(x - mean) / √(std² + ε).", "normalized",
       {"epsilon's place": "inside the root"}),
    of(DEVIATION, "deviation norm's deviation biased",
       "The standard deviation is √(Σ (x - mean)² / D).", "std",
       {"variance": "over D"}, factor=lambda d: (1 - 1 / d)**-0.5),
    Cause("layer norm, not deviation norm", "norm",
          "(x - mean) / √(variance + ε) for (x - mean) / (std + ε).",
          ("norm",), {name: norm.LAYER[name] for name in (
              "epsilon's place", "variance")},
          put=worded("parts", "NORMS", "std", "layer"), case="norm",
          step="variance"),
    Cause("deviation norm, not layer norm", "norm",
          "(x - mean) / (std + ε) for (x - mean) / √(variance + ε).",
          ("norm",), {name: norm.DEVIATION[name] for name in (
              "epsilon's place", "variance")},
          put=worded("parts", "NORMS", "layer", "std"),
          preset="vaswani2017_base", case="norm", step="std"),
    Cause("norms' scale left at 1", "norm", "The scale is not loaded.",
          ("norm",), {"scale": "ignored"}, put=without(
              ends("norm.scale"), 1.0), preset="vaswani2017_base",
          case="norm", step="output"),
    Cause("norms' bias left at 0", "norm", "The bias is not loaded.",
          ("norm",), {"bias": "ignored"}, put=without(ends("norm.bias")),
          preset="vaswani2017_base", case="norm", step="output"),
    Cause("no final norm", "norm", "The norm that ends a stack is left out.",
          (BETWEEN,), {"norm": "missing"},
          put=made_with(without_final_norm), preset="lesson", case="encoder",
          step="output"),
    Cause("a norm more", "norm", "A value is normalised that should not be.",
          (BETWEEN,), {"norm": "there"}, not_put="what ends a stack of ours "
          "is a field of its config, and its scale and bias are weights"),
    Cause("final norm's ε is d_model", "norm",
          "The width is passed as ε, the second argument.", put=all_of(*(
              after_init("dialects.stacks", cls,
                         lambda stack: _final_eps(stack, 48.0))
              for cls in ("DialectEncoder", "DialectDecoder"))),
          preset="lesson", case="encoder", step="output",
          not_explained="it is told as the ε that it is"),
)
