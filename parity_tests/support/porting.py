"""A bench of planted faults: Hugging Face's own tiny models, one wrong thing.

``python -m parity_tests.support.porting [FAMILY …]`` plants each fault into a
copy of a model in float64, has it explained and prints a table by family;
the tests do so with a sample. Weights are drawn, and nothing is downloaded.
"""

import collections
import contextlib
import dataclasses
import functools
import sys
import typing
from unittest import mock

import numpy as np

from parity.causes.explain import explain
from parity.comparison.compare import compare
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.tracing.trace import trace

W, H, G, F, V, T = 24, 4, 2, 40, 29, 9

#: What became of a planted fault.
RIGHT, UNKNOWN, WRONG, CRASH = "right", "not identified", "wrong", "crash"

#: What is told of a fault that nobody knows: nothing, or what stands behind.
NOBODYS = [()]

SIZES = {
    "bert": {"hidden_size": W, "num_hidden_layers": 2, "vocab_size": V,
             "num_attention_heads": H, "intermediate_size": F,
             "max_position_embeddings": 16, "pad_token_id": 0},
    "gpt2": {"n_embd": W, "n_layer": 2, "vocab_size": V, "n_head": H,
             "n_inner": F, "n_positions": 16},
    "llama": {"hidden_size": W, "num_hidden_layers": 2, "vocab_size": V,
              "num_attention_heads": H, "num_key_value_heads": G,
              "intermediate_size": F, "max_position_embeddings": 16},
    "t5": {"d_model": W, "num_layers": 2, "vocab_size": V, "num_heads": H,
           "d_kv": 8, "d_ff": F, "relative_attention_num_buckets": 8,
           "relative_attention_max_distance": 12, "pad_token_id": 0,
           "feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0},
    **{name: {"d_model": W, "encoder_layers": 2, "decoder_layers": 1,
              "vocab_size": V, "encoder_attention_heads": H,
              "decoder_attention_heads": H, "encoder_ffn_dim": F,
              "decoder_ffn_dim": F, "max_position_embeddings": 16,
              "pad_token_id": 0, "decoder_start_token_id": 0,
              "forced_eos_token_id": None}
       for name in ("bart", "marian")},
}

CLASSES = {"bert": "BertForMaskedLM", "gpt2": "GPT2LMHeadModel",
           "llama": "LlamaForCausalLM", "marian": "MarianMTModel",
           "t5": "T5ForConditionalGeneration",
           "bart": "BartForConditionalGeneration"}

CONFIGS = {"bert": "BertConfig", "gpt2": "GPT2Config", "t5": "T5Config",
           "llama": "LlamaConfig", "marian": "MarianConfig",
           "bart": "BartConfig"}


@dataclasses.dataclass(frozen=True)
class Planted:
    """A fault in a copy of a model.

    Attributes:
        family: which model.
        name: what is wrong, in a word or two.
        causes: what is told of it: (cause, what it is in a, and in b) each,
            of which others than the first may be left out; [] of equal models.
        config: fields of the copy's config.
        change: what is done to the copy.
        both: fields of both models' config.
        verdict: what is said of the two, where it is not that of the causes.
    """

    family: str
    name: str
    causes: list
    config: dict = dataclasses.field(default_factory=dict)
    change: typing.Callable | None = None
    both: dict = dataclasses.field(default_factory=dict)
    verdict: str = ""

    @property
    def expected(self):
        """The verdict that is right."""
        return self.verdict or (DIVERGENCE if self.causes else MATCH)

    def judged(self, verdict, told):
        """What became of it, by the verdict and what was told, () for what is
        not identified."""
        if verdict != self.expected or not {*told} <= {(), *self.causes}:
            return WRONG
        if self.causes[:1] == NOBODYS:  # and no other is named first
            return RIGHT if told[:1] == NOBODYS else WRONG
        return RIGHT if {*self.causes[:1]} <= {*told} else UNKNOWN


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one Planted: a verdict and what was told."""

    planted: Planted
    verdict: str
    told: list
    first: str = ""


def made(family, **config):
    """A model in float64 with drawn weights, the same for equal shapes."""
    import torch
    import transformers
    torch.manual_seed(0)
    settings = SIZES[family] | config
    model = getattr(transformers, CLASSES[family])(getattr(
        transformers, CONFIGS[family])(
            **settings, attn_implementation="eager")).double().eval()
    with torch.no_grad():
        for name, array in model.named_parameters():
            draw = np.random.default_rng(sum(map(ord, name)))
            if "embed_positions" in name and family == "marian":
                continue
            array.copy_(torch.from_numpy(draw.normal(
                "norm" in name.lower() and "weight" in name,
                0.3, array.shape)))
    return model


def inputs(family):
    """Token ids, of which two are padding, and their mask."""
    import torch
    draw = np.random.default_rng(1)
    ids = torch.from_numpy(draw.integers(1, V, (2, T)))
    mask = torch.ones(2, T, dtype=torch.long)
    mask[0, -2:] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    if family in ("t5", "bart", "marian"):
        given["decoder_input_ids"] = ids[:, 2:].clone()
    return given if family == "bert" else given | {"use_cache": False}


def patched(kind, **functions):
    """Functions of a model's file, replaced while modules of a kind run."""
    def change(model):
        for module in model.modules():
            if kind in type(module).__name__:
                _patch(module, functions)
    return change


def _patch(module, functions):
    forward = module.forward
    scope = vars(sys.modules[type(module).__module__])
    replacements = {name: make(scope[name]) for name, make in functions.items()}

    @functools.wraps(forward)
    def called(*arguments, **keywords):
        with mock.patch.dict(scope, replacements):
            return forward(*arguments, **keywords)
    module.forward = called


def wrapped(kind, make, last=False):
    """The forward of modules of a kind, replaced by ``make(module, old)``."""
    def change(model):
        modules = [m for m in model.modules() if kind in type(m).__name__]
        for module in modules[-last:]:
            forward = module.forward
            module.forward = functools.wraps(forward)(make(module, forward))
    return change


def attribute(kind, **values):
    """Attributes of modules of a kind, or what a function makes of them."""
    def change(model):
        for module in model.modules():
            if kind in type(module).__name__:
                for name, value in values.items():
                    setattr(module, name, value(getattr(module, name))
                            if callable(value) else value)
    return change


def weights(*pairs):
    """Parameters: (the end of a path, what is made of the array)."""
    def change(model):
        import torch
        with torch.no_grad():
            for name, array in model.named_parameters():
                for end, function in pairs:
                    if name.endswith(end):
                        array.copy_(function(array.clone()))
    return change


def exchanged(one, two):
    """Parameters whose paths end so, each in the other's place."""
    def change(model):
        import torch
        arrays = dict(model.named_parameters())
        with torch.no_grad():
            for name, array in arrays.items():
                other = arrays.get(name.removesuffix(one) + two)
                if name.endswith(one) and other is not None:
                    kept = array.clone()
                    array.copy_(other)
                    other.copy_(kept)
    return change


def result_of(planted):
    """Plant a fault, compare and explain."""
    a = made(planted.family, **planted.both)
    b = made(planted.family, **planted.both | planted.config)
    b.load_state_dict({name: array for name, array in a.state_dict().items()
                       if name in b.state_dict()}, strict=False)
    if planted.change:
        planted.change(b)
    given = inputs(planted.family)
    try:
        with contextlib.redirect_stderr(None):
            traces = trace(a, **given), trace(b, **given)
            comparison = compare(*traces, allow_same=True)
            told = explain(comparison, *traces)
    except Exception as error:  # the bench counts it
        return Outcome(planted, CRASH, [repr(error)[:70]])
    named = [(each.cause, each.in_a, each.in_b) if each.identified else ()
             for each in told]
    return Outcome(planted, planted.judged(comparison.verdict, named), named,
                   comparison.first.name if comparison.first else "")


def table(results):
    """Lines: how many of each family came to which verdict."""
    verdicts = RIGHT, UNKNOWN, WRONG, CRASH
    counts = collections.Counter(
        (result.planted.family, result.verdict) for result in results)
    yield f"{'family':8}" + "".join(f"{word:>16}" for word in verdicts)
    for family in dict.fromkeys(r.planted.family for r in results):
        yield f"{family:8}" + "".join(
            f"{counts[family, word]:16}" for word in verdicts)


def main(families):
    """Plant every fault of some families, or of all."""
    from parity_tests.support.planted import FAULTS
    results = []
    for planted in FAULTS:
        if not families or planted.family in families:
            result = result_of(planted)
            results.append(result)
            print(f"{planted.family:7}{planted.name:34}{result.verdict:16}"
                  f"{result.first:44}{result.told}", flush=True)
    print(*table(results), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
