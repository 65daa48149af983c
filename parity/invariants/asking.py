"""``parity.invariance``: one model asked in ways that change no answer."""

from collections.abc import Callable, Sequence
from typing import Any

from parity_io.errors import InputError, is_whole, one_of
from parity.comparison.result import describe
from parity.invariants import batches, caches
from parity.invariants.arguments import Call
from parity.invariants.kept import Keeping
from parity.invariants.responses import Responses
from parity.invariants.uses import CACHED, probe

#: All ways that read with a cache.
CACHE = "cache"

#: The ways that are asked, and every one that can be named.
USUAL = *batches.WAYS, CACHE
WAYS = (*USUAL, *CACHED)


def invariance(model: Any, *inputs: Any, ways: Sequence[str] | None = None,
               pad_id: int | None = None, step: Callable | None = None,
               **keywords: Any) -> Responses:
    """Ask a model in several ways that must give the same answer.

    Args:
        model: a torch.nn.Module, a Keras layer or model, an nnx.Module or an
            mlx.nn.Module.
        inputs, keywords: its arguments, with a batch of at least one row.
        ways: those of WAYS to try. One that is named and cannot be asked
            makes the verdict incomplete; by default those of batches and of
            caches that the model can be asked.
        pad_id: the token that is padding; by default the config's, else 0.
        step: a function of (model, place, state, *inputs, **keywords), which
            has the model read the one token at this place, with the state of
            the place before, None at first, and returns its output and the new
            state. If its second parameter is ``places`` it is given a slice,
            and reads several. A model that takes ``past_key_values`` or the
            like needs none.

    Returns:
        Responses: of each way whether the model's outputs are the same to the
        bit, within rounding, or wrong.

    Raises:
        InputError: a way is unknown or none is given, pad_id is no id, no
            argument is of a batch, or a cache alone is asked for and it is not
            known how the model keeps one.
    """
    named = [] if ways is None else [
        one_of(way, WAYS, "way") for way in ways]
    if ways is not None and not named:
        raise InputError(
            f"no way is given; choose from {', '.join(WAYS)}, or leave ways "
            "out.")
    if pad_id is not None and not (
            is_whole(pad_id) and 0 <= pad_id < 2**31):
        raise InputError(
            f"pad_id is {pad_id!r}; give the id of a token, 0 or more.")
    asked = named or USUAL
    cached = [*CACHED] if CACHE in asked else [
        way for way in CACHED if way in asked]
    call = Call(model, inputs, keywords)
    if pad_id is None:
        pad_id = getattr(getattr(model, "config", None), "pad_token_id", None)
    if "use_cache" in call.takes:
        call.keywords.setdefault("use_cache", False)
    base = call.first()
    found, notes, left = batches.responses(
        call, base, [way for way in batches.WAYS if way in asked],
        pad_id or 0)
    keeping = None
    try:
        keeping = Keeping(call, step) if cached else None
        probe(keeping) if cached else None
    except InputError as error:
        if step or named and not {*named} & {*batches.WAYS}:
            raise
        keeping = None
        left |= dict.fromkeys(
            [way for way in (CACHE, *CACHED) if way in asked],
            f"not asked with a cache: {error}")
    if keeping:
        more, kept_back = caches.responses(keeping, cached)
        found, left = found + more, left | kept_back
    return Responses(
        found, describe(base), [*dict.fromkeys(
            [*base.notes, *notes, *left.values()])],
        [words for way, words in left.items() if way in named],
        [way for way in left if way not in named])
