"""What a user hands in to be trained: ``Training``, a tuple or a dict."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from parity_io.errors import InputError
from parity.tracing.trace import framework_of

#: Names by which a function of the user asks for something.
MODEL, OPTIMIZER = ("model", "net", "module"), (
    "optimizer", "optimiser", "opt")

#: Methods by which optimisers change weights.
UPDATING = "step", "update", "apply"


@dataclasses.dataclass
class Training:
    """One side of ``parity.diff_training``.

    Of ``loss`` with ``optimizer``, ``step`` and ``loop`` one is given; a
    compiled Keras model needs its batches alone.

    Attributes:
        model: a torch.nn.Module, nnx.Module, Keras or mlx.nn model.
        loss: a function of the model's output and the target, the last array
            of a batch; or of the model and the batch, if its first parameter
            is called ``model``. None: the model returns the loss.
        optimizer: a torch.optim optimiser, an nnx.Optimizer or optax
            transformation, a Keras or an MLX optimiser.
        batches: a list of batches, each an array, a tuple or a dict.
        schedule: torch's scheduler of the learning rate, stepped after the
            optimiser; others have theirs inside the optimiser.
        clip: the largest global norm of the gradient; or a function that is
            called with the model's parameters before the optimiser's step.
        accumulate: how many batches make one step; their losses are averaged.
        step: one step of the user's own: a function of the batch that may ask
            for ``model`` and ``optimizer`` by name, and may return the loss.
        loop: the whole run as a function without parameters. As a generator it
            yields, after each step, the loss or nothing.
    """

    model: Any
    loss: Callable | None = None
    optimizer: Any = None
    batches: Iterable = ()
    schedule: Any = None
    clip: Any = None
    accumulate: int = 1
    step: Callable | None = None
    loop: Callable | None = None

    def __post_init__(self):
        framework_of(self.model)  # refuses what is no model
        for name in ("loss", "step", "loop"):
            value = getattr(self, name)
            if not (value is None or callable(value)):
                raise InputError(
                    f"{name} is a {type(value).__name__}; give a function.")
        if self.optimizer is not None and not any(
                callable(getattr(self.optimizer, name, None))
                for name in UPDATING):
            raise InputError(
                f"optimizer is a {type(self.optimizer).__name__}; give one of "
                "the model's library.")
        if self.step and self.loop:
            raise InputError("a training has a step and a loop; give one.")
        if not (isinstance(self.accumulate, int) and self.accumulate > 0):
            raise InputError(
                f"accumulate is {self.accumulate!r}; give how many batches "
                "make a step, 1 or more.")
        if not isinstance(self.batches, (list, tuple)):
            try:
                self.batches = list(self.batches)
            except TypeError:
                raise InputError(
                    f"batches is a {type(self.batches).__name__}; give a "
                    "list of batches.") from None

    @property
    def framework(self):
        """As parity.tracing.trace.framework_of names it."""
        return framework_of(self.model)


def training_of(made, where="make"):
    """The Training that a user's function returned.

    Args:
        made: a Training, a tuple of its first fields, or a dict of them.
        where: how the function is called in a sentence.

    Raises:
        InputError: it is none of these.
    """
    if isinstance(made, Training):
        return made
    names = [field.name for field in dataclasses.fields(Training)]
    if isinstance(made, dict):
        unknown = sorted(set(made) - set(names))
        if unknown or "model" not in made:
            raise InputError(
                f"{where} returned a dict "
                + (f"with {unknown[0]!r}" if unknown else "without a model")
                + f"; its names are {', '.join(names)}.")
        return Training(**made)
    if isinstance(made, tuple) and len(made) == 2:  # as parity compare has it
        model, inputs = made
        if callable(inputs) and not hasattr(inputs, "shape"):
            return Training(model, loop=inputs)
        if is_compiled(model):
            return Training(model, batches=inputs)
        return Training(model, batches=[inputs])
    if isinstance(made, tuple) and len(made) == 4:
        return Training(*made)
    raise InputError(
        f"{where} must return a parity.Training, or (model, loss, optimizer, "
        f"batches), (model, loop) or a dict; it returned "
        + (f"a tuple of {len(made)}." if isinstance(made, tuple)
           else f"a {type(made).__name__}."))


def is_compiled(model):
    """Whether a model is a Keras one that was compiled."""
    return framework_of(model) == "keras" and bool(
        getattr(model, "compiled", False))


def arguments(batch):
    """A batch as (positional arguments, keywords)."""
    if isinstance(batch, dict):
        return (), batch
    return (tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)), {}


def asked(function):
    """The names of a function's parameters without a default."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each.name for each in found if each.default is each.empty
            and each.kind in (each.POSITIONAL_ONLY,
                              each.POSITIONAL_OR_KEYWORD)]


def wants_model(function):
    """Whether a loss is a function of the model and the batch."""
    return asked(function)[:1] and asked(function)[0] in MODEL


def called_step(training, batch):
    """Call a user's own step with what it asks for by name."""
    names = asked(training.step)
    given = [training.model if name in MODEL else
             training.optimizer if name in OPTIMIZER else ...
             for name in names]
    if given.count(...) == 1:
        rest = [batch]
    else:
        rest, keywords = arguments(batch)
        rest = [*rest, *keywords.values()]
    if given.count(...) != len(rest) and names:
        raise InputError(
            f"the step asks for {', '.join(names)}, and a batch has "
            f"{len(rest)} arrays; let it ask for the batch alone, or for as "
            "many.")
    rest = iter(rest)
    return training.step(*(next(rest) if each is ... else each
                           for each in given))


def loss_on(training, batch):
    """The loss of a batch, as its framework has it.

    Raises:
        InputError: there is no target, or no scalar.
    """
    args, keywords = arguments(batch)
    model, loss = training.model, training.loss
    if loss is None:
        made = model(*args, **keywords)
        value = getattr(made, "loss", None)
        if value is None and isinstance(made, dict):
            value = made.get("loss")
        value = made if value is None else value
    elif wants_model(loss):
        value = loss(model, *([batch] if len(asked(loss)) == 2 else args),
                     **(keywords if len(asked(loss)) != 2 else {}))
    elif len(args) < 2:
        raise InputError(
            "a batch has no target beside the inputs; give (inputs, target), "
            "or a loss whose first parameter is called model.")
    else:
        value = loss(model(*args[:-1], **keywords), args[-1])
    if isinstance(value, tuple) and value:
        value = value[0]  # the loss, and something beside it
    return scalar(value)


def scalar(value):
    """A loss, if it is one number; raises InputError."""
    shape = getattr(value, "shape", None)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if shape is None or any(each != 1 for each in shape):
        what = (f"a {type(value).__name__}" if shape is None
                else f"an array of shape {list(shape)}")
        raise InputError(
            f"the loss is {what}, not a number; return its mean or sum.")
    return value
