"""TrainingConfig, the one description of how a model is trained."""

import dataclasses
import math

from parity_io.errors import InputError, is_real, is_whole, one_of

CHOICES = {
    "optimizer": ("adam", "adamw"),
    "schedule": ("inverse_sqrt", "constant"),
    "masks": ("named", "native"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Every number of a training run that changes the maths.

    Frozen, and checked when it is made. Defaults are the paper's (section 5.3),
    without clipping.

    Attributes:
        optimizer: "adam" (Kingma and Ba 2015, algorithm 1: ε outside the root,
            after the bias correction), or "adamw", which also shrinks every
            weight by learning_rate · weight_decay (Loshchilov and Hutter
            2019).
        schedule: "inverse_sqrt", learning_rate · d_model^-½ · min(step^-½,
            step · warmup_steps^-1.5), equation 3 of the paper, or "constant",
            learning_rate.
        learning_rate: the learning rate, or the factor before equation 3.
        warmup_steps: how many steps the learning rate rises.
        beta1, beta2, eps: Adam's.
        weight_decay: AdamW's.
        clip_norm: the largest global norm of a gradient; 0 clips nothing.
        masks: "named", dropout masks from Threefry keys, equal everywhere, or
            "native", from the framework's own generator: quicker, and not
            comparable or resumable to the bit.
        seed: from which every key of the run follows.
    """

    optimizer: str = "adam"
    schedule: str = "inverse_sqrt"
    learning_rate: float = 1.0
    warmup_steps: int = 4000
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-9
    weight_decay: float = 0.0
    clip_norm: float = 0.0
    masks: str = "named"
    seed: int = 0

    def __post_init__(self):
        for field, allowed in CHOICES.items():
            one_of(getattr(self, field), allowed, field)
        for field, (least, below, words) in RANGES.items():
            value = getattr(self, field)
            if not is_real(value) or not least <= value < below:
                raise InputError(f"{field} is {value!r}; choose {words}.")
        for field in ("warmup_steps", "seed"):
            value = getattr(self, field)
            if not is_whole(value):
                raise InputError(f"{field} is {value!r}; choose a whole "
                                 "number.")
        if self.weight_decay and self.optimizer == "adam":
            raise InputError(
                f"weight_decay is {self.weight_decay}, but adam decays "
                "nothing; choose optimizer adamw, or 0.")

    def replace(self, **changes):
        """A copy with some fields changed, checked again."""
        unknown = sorted(changes.keys() - self.as_dict().keys())
        if unknown:
            raise InputError(
                f"the training configuration has no field {unknown[0]!r}; its "
                f"fields are {', '.join(self.as_dict())}.")
        return dataclasses.replace(self, **changes)

    def as_dict(self):
        """The fields as a plain dict, in order."""
        return dataclasses.asdict(self)

    @classmethod
    def of_dict(cls, data):
        """What as_dict made plain; earlier versions wrote "rate"."""
        return cls(**{"learning_rate" if name == "rate" else name: value
                      for name, value in data.items()})


_tiny = 5e-324

#: Field -> (at least, below, in words).
RANGES = {
    "learning_rate": (_tiny, math.inf, "a positive number"),
    "warmup_steps": (1, 2**53, "a whole number from 1 to 2⁵³ - 1"),
    "beta1": (0, 1, "a number of at least 0 and below 1"),
    "beta2": (0, 1, "a number of at least 0 and below 1"),
    "eps": (_tiny, math.inf, "a positive number, such as 1e-9"),
    "weight_decay": (0, math.inf, "a number of at least 0"),
    "clip_norm": (0, math.inf, "a number of at least 0; 0 clips nothing"),
    "seed": (0, 2**64, "a whole number from 0 to 2⁶⁴ - 1"),
}
