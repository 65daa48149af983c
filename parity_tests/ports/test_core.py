"""The paper's model is made of the paper's parts, in every implementation."""

import importlib

from transformer_contract.config import PRESETS, TransformerConfig, at_test_size
from transformer_contract.weights import probe_weights


def kinds(engine, config):
    """The classes of ours that a model of a config is made of."""
    package = engine.__package__
    model = engine.build("transformer", config, probe_weights(config))
    modules = importlib.import_module(f"{package}.parameters").modules(model)
    return {type(module) for _, module in modules
            if type(module).__module__.startswith(package)}


def test_the_papers_model_has_no_part_of_a_dialect(engine):
    """Nor one that hands on what it is given."""
    config = at_test_size(PRESETS["vaswani2017_base"])
    found = kinds(engine, config)
    names = {kind.__name__ for kind in found}
    assert {"Transformer", "MultiHeadAttention", "LayerNorm", "Residual",
            "TiedProjection"} <= names
    assert not {name for name in names
                if name.startswith("No") or "Identity" in name}
    assert not {kind for kind in found if "dialects" in kind.__module__}


def test_a_dialects_model_has(engine):
    config = at_test_size(PRESETS["lesson"])
    names = {kind.__name__ for kind in kinds(engine, config)}
    assert {"DialectTransformer", "PreNorm", "ScalarStdLayerNorm"} <= names
    assert "Residual" not in names


def test_the_default_is_the_base_model():
    assert TransformerConfig() == PRESETS["vaswani2017_base"]
