"""Proof by faults: change one number in a port, and the check must see it.

Each fault is applied to a port while the test runs, by replacing a function, a
constant or an array, in a way that every framework allows. The check must exit
with 1 and name the step in which the fault first shows.
"""

import importlib
import math
from unittest import mock

import numpy as np
import pytest
from typer.testing import CliRunner

from parity.cli import app


def patched(port, file, name, make):
    """Replace ``impl_<port>.<file>.<name>`` by ``make(old)``."""
    module = importlib.import_module(f"impl_{port}.{file}")
    target, _, attribute = name.rpartition(".")
    owner = getattr(module, target) if target else module
    return mock.patch.object(
        owner, attribute, make(getattr(owner, attribute)))


def init(port, file, cls, change):
    """Run ``change(self)`` after a class's ``__init__``."""
    def make(old):
        def made(self, *args, **keywords):
            old(self, *args, **keywords)
            change(self)
        return made
    return patched(port, file, f"{cls}.__init__", make)


def given_weights(port, change):
    """Change the arrays on their way into the port."""
    def make(old):
        def made(component, config, weights, *args, **keywords):
            return old(component, config, change(dict(weights)), *args,
                       **keywords)
        return made
    return patched(port, "engine", "build", make)


def swap(first, second):
    """Exchange two projections of every attention."""
    def change(weights):
        swapped = {}
        for name, array in weights.items():
            parts = name.split(".")
            if len(parts) > 1 and parts[-2] in (first, second):
                parts[-2] = second if parts[-2] == first else first
            swapped[name] = weights[".".join(parts)]
        return swapped
    return change


def square_transposed(which):
    """Transpose one square kernel of every attention."""
    def change(weights):
        return {name: np.ascontiguousarray(array.T)
                if name.endswith(f"{which}.kernel") else array
                for name, array in weights.items()}
    return change


def interleaved_heads(weights):
    """Group the query's columns by feature instead of by head."""
    def regroup(array):
        return array.reshape(-1, 8, 6).swapaxes(1, 2).reshape(array.shape)
    return {name: np.ascontiguousarray(regroup(array))
            if name.endswith("query.kernel") else array
            for name, array in weights.items()}


def through_float32(weights):
    """A float32 that hides in a float64 run."""
    return {name: array.astype(np.float32).astype(array.dtype)
            if name.endswith("value.kernel") else array
            for name, array in weights.items()}


def set_eps(eps):
    def change(self):
        self.eps = eps
    return change


def causal_shifted(old):
    """A mask off by one: a query also sees its next neighbour."""
    def made(length):
        wide = old(length + 1)
        return wide[:, :, 1:, :-1] | old(length)
    return made


def mask_inverted(old):
    def made(tokens, pad_id):
        return ~old(tokens, pad_id)
    return made


class Math:
    """``math`` with another root."""

    def __init__(self, sqrt):
        self.sqrt = sqrt


def no_root(old):
    return Math(lambda x: 1.0)


def root_of_all_heads(old):
    """√d_model where √d_k belongs, d_model being 6 d_k."""
    return Math(lambda x: math.sqrt(6 * x))


def choice(port, file, table, word, other):
    """Let a word of a table of variants mean another one."""
    module = importlib.import_module(f"impl_{port}.{file}")
    table = getattr(module, table)
    other = table.get(other) or getattr(module, other)
    return mock.patch.dict(table, {word: other})


#: name -> (how to apply it to a port, preset, case and step named first).
FAULTS = {
    "layer norm's eps 1e-5, not 1e-6": (
        lambda port: init(port, "layer_norm", "LayerNorm", set_eps(1e-5)),
        "vaswani2017_base", "norm", "normalized"),
    "deviation norm's eps 1e-5, not 1e-6": (
        lambda port: init(port, "layer_norm", "StdLayerNorm", set_eps(1e-5)),
        "complete", "norm", "normalized"),
    "query kernel transposed": (
        lambda port: given_weights(port, square_transposed("query")),
        "complete", "single_head_attention", "query"),
    "output kernel transposed": (
        lambda port: given_weights(port, square_transposed("output")),
        "complete", "self_attention", "output"),
    "key and value swapped": (
        lambda port: given_weights(port, swap("key", "value")),
        "complete", "single_head_attention", "key"),
    "query and key swapped": (
        lambda port: given_weights(port, swap("query", "key")),
        "complete", "single_head_attention", "query"),
    "heads grouped by feature": (
        lambda port: given_weights(port, interleaved_heads),
        "complete", "single_head_attention", "query"),
    "a float32 weight in a float64 run": (
        lambda port: given_weights(port, through_float32),
        "complete", "single_head_attention", "value"),
    "causal mask off by one": (
        lambda port: patched(port, "engine", "causal_mask", causal_shifted),
        "complete", "masks", "target_mask"),
    "padding mask of the wrong polarity": (
        lambda port: patched(port, "engine", "padding_mask", mask_inverted),
        "complete", "masks", "source_mask"),
    "embedding not scaled": (
        lambda port: patched(port, "embedding", "math", no_root),
        "complete", "token_embedding", "embedded"),
    "scores over √d_model": (
        lambda port: patched(port, "attention", "math", root_of_all_heads),
        "complete", "single_head_attention", "scores"),
    "positions in halves": (
        lambda port: choice(port, "positional", "TABLES", "interleaved",
                            "halves"),
        "complete", "positional_encoding", "positions"),
    "gelu, not relu": (
        lambda port: choice(port, "feed_forward", "ACTIVATIONS", "relu",
                            "gelu"),
        "complete", "feed_forward", "activated"),
    "pre-norm, not post-norm": (
        lambda port: choice(port, "residual", "RESIDUALS", "post", "pre"),
        "complete", "residual", "norm.mean"),
    "biased deviation": (
        lambda port: choice(port, "layer_norm", "NORMS", "std", "layer"),
        "complete", "norm", "variance"),
    "final norm's eps d_model, not 1e-6": (
        lambda port: init(port, "encoder", "Encoder",
                          lambda encoder: set_eps(48)(encoder.norm)),
        "lesson", "encoder", "output"),
    "logits, not log-probabilities": (
        lambda port: choice(port, "projection", "OUTPUTS", "log_probs",
                            "logits"),
        "lesson", "project", "output"),
}


def check(port, preset):
    """Run ``parity check`` on a port; its status and what it printed."""
    done = CliRunner().invoke(app, [
        "check", "--preset", preset, "--port", port, "--dtype", "float64",
        "--no-full-size"])
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_named_first(port, fault):
    apply, preset, case, step = FAULTS[fault]
    with apply(port.NAME):
        status, printed = check(port.NAME, preset)
    assert status == 1
    assert (f"First divergence: {port.NAME}, {preset}, {case}, step {step} "
            in printed), printed[printed.find("First divergence"):][:300]


@pytest.mark.parametrize("preset", sorted({f[1] for f in FAULTS.values()}))
def test_without_a_fault_it_matches(port, preset):
    """What the tests above change is what they notice."""
    status, printed = check(port.NAME, preset)
    assert status == 0
    assert "First divergence" not in printed
