"""What users call: models are made, loaded, saved, and write targets."""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from transformer_contract import checks, chosen, saved
from transformer_contract.batch import check_search
from transformer_contract.config import TransformerConfig
from parity_io.errors import InputError, one_of
from transformer_contract.generation import GenerationConfig
from transformer_contract.weights import FLOATS
from impl_jax import parts
from impl_jax.dropout import evaluating, reseed
from impl_jax.masks import padding_mask


#: What ids and masks may be; in a function that is compiled they are the first.
ARRAYS = jax.Array, np.ndarray


def create(config: TransformerConfig, seed: int = 0, dtype: str = "float32",
           device: str = "cpu") -> nnx.Module:
    """A new model of any config, with the initial weights of a seed.

    The weights are the contract's initial_weights, as in every port. The
    model is in training mode, as NNX's are when they are made.

    Raises:
        InputError: there is no such config, seed, dtype or device.
    """
    model = _made(config, saved.initial(config, seed), dtype, device)
    reseed(model, seed)
    model.train()
    return model


def load(name: str | pathlib.Path, dtype: str | None = None,
         device: str = "cpu") -> nnx.Module:
    """The model of a safetensors file that ``save``, in any port, wrote.

    It is in evaluation mode.

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
    from impl_jax import engine  # it imports models, which import this
    if one_of(dtype, FLOATS, "dtype") == "float64" and (
            not jax.config.jax_enable_x64):
        raise InputError(
            "float64 is not enabled in JAX; call "
            'jax.config.update("jax_enable_x64", True) first.')
    return engine.build(
        "transformer", config, saved.rounded(weights, dtype), dtype,
        checks.device(device, engine.devices()))


def save(model: nnx.Module, path: str | pathlib.Path) -> None:
    """Write a model's weights and config; ``load`` of any port reads them.

    Raises:
        InputError: the file cannot be written.
    """
    from impl_jax import engine
    saved.write(model, path, engine.export)


def generate(model: nnx.Module, source: Any, settings: dict) -> jax.Array:
    """Find the targets of sources, without dropout in any mode.

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
    dtype = jnp.asarray(0).dtype  # the caller's, who may not know int64
    with evaluating(model), jax.enable_x64(True):  # scores are float64
        tokens, _ = parts.search(model.config, settings)(
            model, jnp.asarray(source), settings, rows).run()
        return tokens[:, 0].astype(dtype)


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

    Ids and masks are checked: their numbers where they are known, and not in a
    function that is being compiled.

    Raises:
        InputError: they do not fit.
    """
    config = model.config
    if config.stacks != "decoder":
        _check_ids(source, config.source_ids, config.source_length, "source")
        own = padding_mask(source, config.pad_id)
        source_mask = _mask(source_mask, own, "source")
    if config.stacks != "encoder":
        _check_ids(target, config.target_vocab, config.max_length, "target")
        own = parts.decoder_mask(config)(target, config.pad_id)
        target_mask = _mask(target_mask, own, "target")
    if config.stacks == "both":
        checks.pairs(source.shape[0], target.shape[0])
    return source_mask, target_mask


def _check_ids(ids, vocab, max_length, what):
    """Refuse ids that a model cannot read."""
    checks.kind(ids, ARRAYS, "a jax.Array", f"{what} ids")
    values = _values(ids)
    if values is not None:
        checks.tokens(values, vocab, max_length, what)
    else:
        checks.whole(ids.dtype, ids.shape, what)
        checks.length(ids.shape[1], max_length, what)


def _mask(mask, own, what):
    """The mask, or else the ids' own; one of their inverse is refused."""
    if mask is None:
        return own
    checks.kind(mask, ARRAYS, "a jax.Array", f"{what} mask")
    if len(mask.shape) == 2 and what == "source":
        mask = mask[:, None, None, :]
    checks.given(mask, own, what)
    values, wanted = _values(mask), _values(own)
    if values is not None and wanted is not None:
        checks.meaning(values, wanted, what)
    return mask


def _values(array):
    """An array's numbers; None where they are not known yet."""
    return None if isinstance(array, jax.core.Tracer) else np.asarray(array)
