"""What users call: models are made, loaded, saved, and write targets."""

import pathlib
from typing import Any

import numpy as np
import torch
from torch import nn

import transformer_contract.weights
from transformer_contract import checks, chosen, shipped
from transformer_contract.batch import check_search
from transformer_contract.config import TransformerConfig
from transformer_contract.errors import InputError, one_of
from transformer_contract.generation import GenerationConfig
from transformer_contract.schema import schema
from transformer_contract.weights import FLOATS
from impl_torch import parts
from impl_torch.dropout import evaluating
from impl_torch.masks import padding_mask


def create(config: TransformerConfig, seed: int = 0, dtype: str = "float32",
           device: str = "cpu") -> nn.Module:
    """A new model of any config, with the initial weights of a seed.

    The weights are the contract's initial_weights, as in every port. The
    model is in training mode, as torch's are when they are made.

    Raises:
        InputError: there is no such dtype or device.
    """
    model = _made(
        config, transformer_contract.weights.initial_weights(config, seed),
        dtype, device)
    model.train()
    return model


def load(name: str | pathlib.Path, dtype: str | None = None,
         device: str = "cpu") -> nn.Module:
    """The model of a safetensors file that ``save``, in any port, wrote.

    It is in evaluation mode.

    Args:
        name: a shipped model's, such as "dates", or a path.
        dtype: what to compute in; by default the file's.

    Raises:
        InputError: the file cannot be read, or is no model's.
    """
    file = f"{name}.safetensors"
    path = shipped.sound(file) if file in shipped.sums() else name
    weights, metadata = transformer_contract.weights.load(path)
    try:
        config = TransformerConfig(
            **transformer_contract.weights.described(metadata)["config"])
    except (KeyError, TypeError):
        raise InputError(
            f"{str(path)!r} does not say which model it is; give a file that "
            "save wrote.") from None
    transformer_contract.weights.check(weights, schema(config), str(path))
    return _made(config, weights,
                 dtype or next(iter(weights.values())).dtype.name, device)


def _made(config, weights, dtype, device):
    from impl_torch import engine  # it imports the models, and they this
    return engine.build(
        "transformer", config, weights, one_of(dtype, FLOATS, "dtype"),
        one_of(device, engine.devices(), "device"))


def save(model: nn.Module, path: str | pathlib.Path) -> None:
    """Write a model's weights and config; ``load`` of any port reads them.

    Raises:
        InputError: the file cannot be written.
    """
    from impl_torch import engine
    transformer_contract.weights.save(
        path, engine.export(model), config=model.config.as_dict())


def generate(model: nn.Module, source: Any, settings: dict) -> torch.Tensor:
    """Find the targets of sources, without dropout in any mode.

    Args:
        source: int [B S].
        settings: fields of a GenerationConfig, by name; a beam of more than 1
            is beam search, else the method is greedy search.

    Returns:
        Each source's best target, int [B N].

    Raises:
        InputError: the ids or settings do not fit.
    """
    beam = settings.get("beam", 1)
    settings = GenerationConfig(**{
        "method": "beam" if beam > 1 else "greedy", "beam": beam, **settings})
    rows = check_search(
        model.config, source.numpy(force=True), settings, None)
    with torch.no_grad(), evaluating(model), torch.device(source.device):
        tokens, _ = parts.search(model.config, settings)(
            model, source, settings, rows).run()
    return tokens[:, 0]


def check_class(model, config):
    """Refuse a config that asks for a model of another class."""
    wanted = parts.part(parts.MODELS, chosen.model(config))
    if not isinstance(model, wanted):
        raise InputError(
            f"this config is a {wanted.__name__}'s, and not a "
            f"{type(model).__name__}'s; make the model by create(config).")


def given_masks(model, source, target, source_mask, target_mask):
    """Both masks: bool [B 1 1 S] and [B 1 T T]. None follows from the ids.

    Ids and masks are checked: their numbers where they are known, and not in a
    function that is being compiled.

    Raises:
        InputError: they do not fit.
    """
    config = model.config
    if source is not None:
        _check_ids(source, config.source_ids, config.source_length, "source")
        own = padding_mask(source, config.pad_id)
        source_mask = _mask(source_mask, own, "source")
    if target is not None:
        _check_ids(target, config.target_vocab, config.max_length, "target")
        # torch: parts.decoder_mask imports, and so cannot be compiled
        own = model.decoder_mask(target, config.pad_id)
        target_mask = _mask(target_mask, own, "target")
    return source_mask, target_mask


def _check_ids(ids, vocab, max_length, what):
    """Refuse ids that a model cannot read."""
    values = _values(ids)
    if values is not None:
        checks.tokens(values, vocab, max_length, what)
    else:
        checks.length(ids.shape[1], max_length, what)


def _mask(mask, own, what):
    """The mask, or else the ids' own; one of their inverse is refused."""
    if mask is None:
        return own
    if len(mask.shape) == 2 and what == "source":
        mask = mask[:, None, None, :]
    checks.mask(mask, own.shape)
    values, wanted = _values(mask), _values(own)
    if (values is not None and wanted is not None and wanted.any()
            and np.array_equal(values, ~wanted)):
        raise InputError(
            f"the {what} mask is the inverse of the ids' own; give True where "
            "a token may be read.")
    return mask


def _values(tensor):
    """A tensor's numbers; None where they are not known yet."""
    if (torch.compiler.is_compiling() or tensor.is_meta
            or type(tensor) is not torch.Tensor):
        return None
    try:
        return tensor.numpy(force=True)
    except RuntimeError:  # torch: vmap gives none
        return None
