"""Which models a fast form computes; others are left to the readable one.

A search writes a part of the maths again, and so knows the variants that it
was written for. A field that is not listed needs nothing: its variants are
components, which both forms call.

It also computes at once what several parts of a model would, and so knows them
as build makes them. A model in which a user changed another thing than weights
is left to the readable form.
"""

import collections
import dataclasses
import warnings

from transformer_contract.errors import InputError


class NotAsBuilt(UserWarning):
    """A model was edited after build, so the readable form computes."""


#: What counts by its value, and what holds other things.
PLAIN = {bool, int, float, str}
HOLDING = {dict, collections.OrderedDict, list, tuple, set}

#: What a search with a cache knows: field of a TransformerConfig -> its words.
KNOWN = {
    "positions": ("interleaved", "halves", "learned"),
    "position_padding": (False,),
    "embedding_norm": (False,),
    "softmax_rounding": ("none",),
    "begin": ("token",),
    "stacks": ("both",),
}

#: The steps that a fast form may compute together with others, and so not
#: show: never an output, a loss, or a weight's gradient.
FUSABLE = {"query", "key", "value", "scores", "weights", "context", "mean",
           "centered", "variance", "normalized", "inner", "gradients"}

#: What a search that is compiled as a whole knows: field of a
#: GenerationConfig -> its words.
COMPILED = {
    "finishing": ("all",),
    "unfinished": ("compete",),
    "min_tokens": (1,),
    "prompt": ((),),
    "forced_bos_id": (None,),
    "forced_eos_id": (None,),
    "suppress_tokens": ((),),
    "begin_suppress_tokens": ((),),
    "allow_padding": (False,),
    "top_p_of_top_k": (False,),
}


def searches(config):
    """Whether the fast search with a cache knows a model of this config."""
    return not unknown(config, KNOWN)


def compiles(config, settings):
    """Whether a search compiled as a whole knows the model and settings."""
    return (searches(config) and settings.bos_id != config.pad_id
            and not unknown(settings, COMPILED))


def described(parts, arrays, used=(), kinds=(), shared=()):
    """What each part of a model is, to compare it with another's.

    Args:
        parts: [(path, object)] of a model and all below it.
        arrays: kinds of which only shapes count, as of weights.
        used: names of attributes that change as a model is used.
        kinds: {kind: the one that it counts as}.
        shared: kinds of which it counts too where else each stands.

    Returns:
        {path: (its kind, *(name, what it holds under it))}; what is empty,
        zero or None is left out.
    """
    inside, kinds, first = {id(part) for _, part in parts}, dict(kinds), {}

    def told(value, place):
        kind = type(value)
        if kind in PLAIN or kind in HOLDING and not value:
            return value
        if isinstance(value, arrays):
            return ("array", tuple(getattr(value, "shape", ())),
                    isinstance(value, shared)
                    and first.setdefault(id(value), place))
        if id(value) in inside:
            return type(None)
        if isinstance(value, dict):
            return tuple((key, told(below, (place, key)))
                         for key, below in value.items() if below is not None)
        if isinstance(value, (list, tuple, set)):
            return tuple(told(below, place) for below in value)
        if (callable(value) or isinstance(value, (int, float, str))
                or dataclasses.is_dataclass(value)):
            return value
        return type(value)

    return {path: (kinds.get(type(part), type(part)), *(
        (name, found) for name, value in vars(part).items()
        if name not in used and value is not None
        and (found := told(value, (path, name)))))
        for path, part in parts}


def strange(found, plan):
    """What of a model is not as it was built: a part's path; "" if all is.

    Args:
        found: what describes the model; see ``described``.
        plan: what described it when it was built.
    """
    paths = [path for path in {**plan, **found}
             if found.get(path) != plan.get(path)]
    return (paths[-1] or "the model") if paths else ""


def as_built(path):
    """Whether nothing is strange; warns of the path of what is."""
    if path:
        warnings.warn(
            f"{path} is not as it was built; the readable form computes "
            "instead", NotAsBuilt, stacklevel=4)
    return not path


def watched(trainer):
    """The trainer, which knows what it was when it was made."""
    trainer.made = of_trainer(trainer)
    return trainer


def of_trainer(trainer):
    """What describes a trainer, beside its model and what steps change."""
    return described(
        [("the trainer", trainer), ("the optimizer", trainer.optimizer)], (),
        {"model", "step", "m", "v", "made", *trainer.USED})


def check_trained(path, trainer):
    """Refuse a step of training if the trainer or its model was changed.

    Args:
        path: what is strange in the model; "" if nothing is.
    """
    path = path or strange(of_trainer(trainer), trainer.made)
    if path:
        raise InputError(f"{path} was changed after the trainer was made; "
                         "make another trainer, or one of the readable form.")


def unknown(config, known):
    """Why a part of a fast form does not take a model: a field and its word.

    Args:
        known: {field: its words that are taken}.

    Returns:
        Of the first such field; "" where all are known.
    """
    return next((f"{field} {getattr(config, field)!r}"
                 for field, words in known.items()
                 if getattr(config, field) not in words), "")


def left(config, settings=None, **parts):
    """What a fast form leaves to the readable one, in words each.

    Args:
        settings: a GenerationConfig, of a form that compiles a whole search.
        parts: of a form beside its searches, {name: what it knows}.
    """
    for part, known in {"generation": KNOWN, **parts}.items():
        why = unknown(config, known)
        if part == "generation" and settings and not why:
            why = unknown(settings, COMPILED) or (
                "a bos id that is padding's" * (
                    settings.bos_id == config.pad_id))
        if why:
            yield f"{part.replace('_', ' ')} ({why})"
