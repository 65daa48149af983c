"""What users call: models are made, loaded, saved, and write targets."""

import functools
import pathlib
from typing import Any

import keras
from keras import ops

from transformer_contract import checks, chosen, saved
from transformer_contract.batch import check_search
from transformer_contract.config import TransformerConfig
from parity_io.errors import InputError, one_of
from transformer_contract.generation import GenerationConfig
from transformer_contract.weights import FLOATS
from impl_keras import parts
from impl_keras.masks import padding_mask


def create(config: TransformerConfig, seed: int = 0, dtype: str = "float32",
           device: str = "cpu") -> keras.Model:
    """A new model of any config, with the initial weights of a seed.

    The weights are the contract's initial_weights, as in every port.

    Raises:
        InputError: there is no such config, seed, dtype or device.
    """
    return _made(config, saved.initial(config, seed), dtype, device)


def load(name: str | pathlib.Path, dtype: str | None = None,
         device: str = "cpu") -> keras.Model:
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
    from impl_keras import engine  # it imports models, which import this
    one_of(dtype, FLOATS, "dtype")
    return engine.build(
        "transformer", config, saved.rounded(weights, dtype), dtype,
        checks.device(device, engine.devices()))


def save(model: keras.Model, path: str | pathlib.Path) -> None:
    """Write a model's weights and config; ``load`` of any port reads them.

    Raises:
        InputError: the file cannot be written.
    """
    from impl_keras import engine
    saved.write(model, path, engine.export)


def generate(model: keras.Model, source: Any, settings: dict) -> Any:
    """Find the targets of sources, without dropout.

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
    ids = ops.convert_to_numpy(source) if ops.is_tensor(source) else source
    rows = check_search(model.config, ids, settings, None)
    source = ops.convert_to_tensor(source)
    from impl_keras import engine
    with engine.on(engine.home(model)):
        tokens, _ = parts.search(model.config, settings)(
            model, source, settings, rows).run()
    return tokens[:, 0]


def check_class(model, config):
    """Refuse a config that asks for a model of another class."""
    checks.kind(config, TransformerConfig, "a TransformerConfig", "config")
    wanted = parts.part(parts.MODELS, chosen.model(config))
    if not isinstance(model, wanted):
        raise InputError(
            f"this config is a {wanted.__name__}'s, and not a "
            f"{type(model).__name__}'s; make the model by create(config).")


def pair(source, target):
    """source and target; keras: its fit hands on both as one."""
    if target is None and isinstance(source, (list, tuple)):
        return source
    return source, target


def one_sentence(function):
    """Let InputErrors be (keras: else it puts lines of its own around them)."""
    @functools.wraps(function)
    def called(*args):
        try:
            return function(*args)
        except InputError as error:
            error._keras_call_info_injected = True
            raise
    return called


@one_sentence
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
    if config.stacks == "both" and None not in (
            source.shape[0], target.shape[0]):
        checks.pairs(source.shape[0], target.shape[0])
    return source_mask, target_mask


def _check_ids(ids, vocab, max_length, what):
    """Refuse ids that a model cannot read."""
    values = _values(ids)
    if values is not None:
        checks.tokens(values, vocab, max_length, what)
        return
    checks.whole(keras.backend.standardize_dtype(ids.dtype), ids.shape, what)
    if ids.shape[1] is not None:
        checks.length(ids.shape[1], max_length, what)


def _mask(mask, own, what):
    """The mask, or else the ids' own; one of their inverse is refused."""
    if mask is None:
        return own
    if not hasattr(mask, "shape"):
        raise InputError(
            f"the {what} mask came as {type(mask).__name__}; give a tensor.")
    if len(mask.shape) == 2 and what == "source":
        mask = mask[:, None, None, :]
    checks.given(mask, own, what)
    values, wanted = _values(mask), _values(own)
    if values is not None and wanted is not None:
        checks.meaning(values, wanted, what)
    return mask


def _values(tensor):
    """A tensor's numbers; None where they are not known yet."""
    try:
        return ops.convert_to_numpy(tensor)
    except Exception:  # keras: each backend has another one for it
        return None
