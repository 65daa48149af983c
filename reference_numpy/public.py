"""What users call: models are made, loaded, saved, and write targets."""

import pathlib
from typing import Any

import numpy as np

from transformer_contract import checks, chosen, saved
from transformer_contract.batch import check_search
from transformer_contract.config import TransformerConfig
from transformer_contract.dropping import dropping, places
from parity_io.errors import InputError, one_of
from transformer_contract.generation import GenerationConfig
from transformer_contract.weights import FLOATS
from reference_numpy import parts, random
from reference_numpy.dropout import draw
from reference_numpy.masks import padding_mask
from reference_numpy.parameters import paths


def create(config: TransformerConfig, seed: int = 0, dtype: str = "float32",
           device: str = "cpu") -> Any:
    """A new model of any config, with the initial weights of a seed.

    The weights are the contract's initial_weights, as in every port.

    Raises:
        InputError: there is no such config, seed, dtype or device.
    """
    return _made(config, saved.initial(config, seed), dtype, device)


def load(name: str | pathlib.Path, dtype: str | None = None,
         device: str = "cpu") -> Any:
    """The model of a safetensors file that ``save``, in any port, wrote.

    Args:
        name: a shipped model's, such as "dates", or a path.
        dtype: what to compute in; by default the file's.

    Raises:
        InputError: the file cannot be read, or is no model's.
    """
    config, weights = saved.read(name)
    return _made(config, weights,
                 dtype or next(iter(weights.values())).dtype.name, device)


def _made(config, weights, dtype, device):
    from reference_numpy import engine  # it imports models, which import this
    one_of(dtype, FLOATS, "dtype")
    return engine.build(
        "transformer", config, saved.rounded(weights, dtype), dtype,
        checks.device(device, engine.devices()))


def save(model: Any, path: str | pathlib.Path) -> None:
    """Write a model's weights and config; ``load`` of any port reads them.

    Raises:
        InputError: the file cannot be written.
    """
    from reference_numpy import engine
    saved.write(model, path, engine.export)


def answer(model: Any, source: np.ndarray, target: np.ndarray,
           source_mask: np.ndarray | None = None,
           target_mask: np.ndarray | None = None) -> np.ndarray:
    """Score every next target token: [B T V]. Masks follow from ids.

    Args:
        source: int [B S].
        target: int [B T].
        source_mask: bool [B 1 1 S] or [B S]; True may be read.
        target_mask: bool [B 1 T T].

    Raises:
        InputError: ids or masks do not fit.
    """
    source, target = np.asarray(source), np.asarray(target)
    masks = given_masks(model, source, target, source_mask, target_mask)
    drawn = draw(
        random.key(np.random.randint(2**31)),
        places(model.config, *source.shape, target.shape[1]),
        model.config.dropout, True) if model.training else {}
    with dropping(paths(model), drawn):
        return model.forward(source, target, *masks)[0]


def generate(model: Any, source: np.ndarray, settings: dict) -> np.ndarray:
    """Find the targets of sources.

    Args:
        source: int [B S].
        settings: fields of a GenerationConfig, by name, as its ``of`` reads
            them.

    Returns:
        Each source's best target, int [B N].

    Raises:
        InputError: the ids or settings do not fit.
    """
    settings = GenerationConfig.of(settings)
    rows = check_search(model.config, np.asarray(source), settings, None)
    tokens, _ = parts.search(model.config, settings)(
        model, np.asarray(source), settings, rows).run()
    return tokens[:, 0]


def check_class(model, config):
    """Refuse a config that asks for a model of another class."""
    checks.kind(config, TransformerConfig, "a TransformerConfig", "config")
    wanted = parts.part(parts.MODELS, chosen.model(config))
    if not isinstance(model, wanted):
        raise InputError(
            f"this config is a {wanted.__name__}'s, and not a "
            f"{type(model).__name__}'s; make the model by create(config).")


def given_masks(model, source, target, source_mask, target_mask):
    """Both masks: bool [B 1 1 S] and [B 1 T T]. None follows from the ids.

    Raises:
        InputError: ids or masks do not fit.
    """
    config = model.config
    if config.stacks != "decoder":
        checks.tokens(
            source, config.source_ids, config.source_length, "source")
        own = padding_mask(source, config.pad_id)
        source_mask = _mask(source_mask, own, "source")
    if config.stacks != "encoder":
        checks.tokens(target, config.target_vocab, config.max_length, "target")
        own = parts.decoder_mask(config)(target, config.pad_id)
        target_mask = _mask(target_mask, own, "target")
    if config.stacks == "both":
        checks.pairs(source.shape[0], target.shape[0])
    return source_mask, target_mask


def _mask(mask, own, what):
    """The mask, or else the ids' own; one of their inverse is refused."""
    if mask is None:
        return own
    checks.kind(mask, np.ndarray, "a numpy.ndarray", f"{what} mask")
    if len(mask.shape) == 2 and what == "source":
        mask = mask[:, None, None, :]
    checks.given(mask, own, what)
    checks.meaning(mask, own, what)
    return mask
