"""The configuration: what it refuses, and what the presets are."""

import dataclasses

import pytest

from transformer_contract.config import (
    CHOICES, PRESETS, TransformerConfig, at_test_size, preset)
from parity_io.errors import InputError

REFUSED = [
    ("n_heads", 7, "multiple of n_heads"),
    ("d_model", 9, "make d_model"),
    ("d_model", 0, "d_model is 0"),
    ("d_model", 512.0, "whole number"),
    ("d_model", True, "whole number"),
    ("n_heads", -8, "n_heads"),
    ("d_ff", "2048", "d_ff"),
    ("source_vocab", 0, "source_vocab"),
    ("n_encoder_layers", 0, "n_encoder_layers"),
    ("max_length", None, "max_length"),
    ("dropout", 1.0, "dropout"),
    ("dropout", -0.1, "dropout"),
    ("dropout", float("nan"), "dropout"),
    ("dropout", "0.1", "dropout"),
    ("label_smoothing", 1.5, "label_smoothing"),
    ("norm_eps", 0, "norm_eps"),
    ("norm_eps", float("inf"), "norm_eps"),
    ("norm_eps", float("nan"), "norm_eps"),
    ("final_norm_eps", -1e-6, "final_norm_eps"),
    ("final_norm", 1, "final_norm"),
    ("tied", "yes", "tied"),
    ("tied", None, "tied"),
    ("output_bias", 1, "output_bias"),
    ("output_bias", "yes", "output_bias"),
    ("token_types", -1, "token_types"),
    ("pad_id", -1, "pad_id"),
    ("position_start", -1, "position_start"),
    ("position_start", 1.0, "position_start"),
    ("position_start", 2**30, "position_start"),
    ("source_max_length", 0, "source_max_length"),
    ("source_max_length", 2**40, "source_max_length"),
    ("position_padding", 1, "position_padding"),
    ("embedding_norm", "yes", "embedding_norm"),
    ("pad_id", 37_000, "pad_id"),
    ("nonsense", 1, "no field 'nonsense'"),
    *((field, "other", field) for field in CHOICES),
]


@pytest.mark.parametrize("field, value, words", REFUSED)
def test_impossible_values_are_refused(field, value, words):
    with pytest.raises(InputError, match=words) as caught:
        TransformerConfig().replace(**{field: value})
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_tied_needs_one_vocabulary():
    with pytest.raises(InputError, match="tied"):
        TransformerConfig(tied=True, source_vocab=10, target_vocab=11)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TransformerConfig().d_model = 8


def test_a_rounding_goes_with_its_norm():
    assert preset("practical").replace(
        norm="rms", norm_rounding="float32").norm_form == "rms_float32"
    with pytest.raises(InputError, match="norm_rounding='none'"):
        preset("practical").replace(norm_rounding="float32")


def test_unknown_preset():
    with pytest.raises(InputError, match="lesson, components"):
        preset("annotated")


def test_presets():
    """The facts that the systems are known by."""
    base, big = PRESETS["vaswani2017_base"], PRESETS["vaswani2017_big"]
    assert (base.d_model, base.n_heads, base.d_ff) == (512, 8, 2048)
    assert (base.n_encoder_layers, base.n_decoder_layers) == (6, 6)
    assert (base.dropout, base.label_smoothing) == (0.1, 0.1)
    assert (base.tied, base.norm_eps, base.residual) == ("all", 1e-6, "post")
    assert (big.d_model, big.n_heads, big.d_ff) == (1024, 16, 4096)
    assert big.dropout == 0.3
    for name, (residual, norm, eps, final, output) in {
        "lesson": ("pre", "scalar_std", 1e-6, True, "log_probs"),
        "components": ("pre", "scalar_std", 1e-6, True, "logits"),
        "notebook": ("post", "layer", 1e-5, False, "logits"),
        "complete": ("post", "std", 1e-6, False, "logits"),
        "practical": ("post", "layer", 1e-5, False, "logits"),
    }.items():
        config = PRESETS[name]
        assert (config.residual, config.norm, config.norm_eps,
                config.final_norm, config.output) == (
                    residual, norm, eps, final, output)
        assert config.tied == "none"


@pytest.mark.parametrize("name", PRESETS)
def test_test_size_keeps_the_variants(name):
    small, config = at_test_size(PRESETS[name]), PRESETS[name]
    for field in (*CHOICES, "norm_eps", "final_norm", "tied"):
        assert getattr(small, field) == getattr(config, field)
