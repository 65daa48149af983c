"""Faults of the size of float32's rounding, and deep models."""

from benchmarks.porting.formulas import (
    in_float64, leaking, mixed, norm, rescaled)
from benchmarks.porting.planted import NOBODYS, Planted
from benchmarks.porting.ways import (
    patched, previous_seen, several, times, wrapped)
from parity.comparison.result import FLOAT32


def gelu_in_the_last(model):
    """The last layer's activation is another."""
    import torch
    model.model.layers[-1].mlp.act_fn.forward = torch.nn.functional.gelu


def small():
    """Faults of the size of float32's rounding, or below, and deep models."""
    sixty_four = {
        "llama": wrapped("RMSNorm", norm(in_float64)),
        "t5": wrapped("T5LayerNorm", norm(in_float64))}
    layers = {"llama": "LlamaMLP", "t5": "DenseGatedActDense",
              "bert": "BertIntermediate", "gpt2": "GPT2MLP"}
    for family, kind in layers.items():
        inside = sixty_four.get(family, several())
        also = [("precision inside", "in float32", "in float64")] * (
            family in sixty_four)
        for share in (1e-9, 1e-8, 1e-7, 5e-7, 1e-6):
            yield Planted(
                family, f"times 1 + {share:g}",
                [("factor", "1", f"{1 + share:.10g}"), *also],
                change=several(inside, wrapped(kind, times(1 + share))))
            yield Planted(
                family, f"{share:g} of the position before", [(), *also],
                change=several(inside, wrapped(kind, previous_seen(share))))
    for family, inside in sixty_four.items():
        yield Planted(family, "norms in float64, deep", [(
            "precision inside", "in float32", "in float64")], change=inside,
            both={"llama": {"num_hidden_layers": 12},
                  "t5": {"num_layers": 6}}[family], verdict=FLOAT32)
    yield Planted(
        "llama", "gelu in the last of 12", [
            ("activation", "silu", "gelu"),
            ("precision inside", "in float32", "in float64")],
        change=several(sixty_four["llama"], gelu_in_the_last),
        both={"num_hidden_layers": 12})
    attention = "LlamaAttention"
    for name, make in (("a leak of -16", leaking(-16.0)),
                       ("a leak of -20", leaking(-20.0)),
                       ("scores times 1 + 1e-7", rescaled(1 + 1e-7))):
        yield Planted("llama", name, NOBODYS, change=patched(
            attention, eager_attention_forward=make))
    yield Planted("llama", "softmax in float64", [(
        "precision inside", "in float32", "in float64")], change=patched(
            attention, eager_attention_forward=mixed), verdict=FLOAT32)
