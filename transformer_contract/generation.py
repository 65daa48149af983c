"""GenerationConfig, the one description of a search for a target."""

import dataclasses
import math

from parity_io.errors import InputError, is_real, is_whole, one_of

CHOICES = {
    "method": ("greedy", "beam", "sample"),
    "length_rule": ("paper", "hf_true", "hf_false", "hf_never", "none"),
    "finishing": ("all", "top", "first", "narrowing"),
    "unfinished": ("compete", "fallback"),
}

#: Whole numbers: field -> the least that it can be.
WHOLE = {"bos_id": 0, "eos_id": 0, "top_k": 0, "max_tokens": 1,
         "min_tokens": 1, "beam": 1, "seed": 0, "no_repeat_ngram": 0}

#: What only a sample follows.
SAMPLING = "temperature", "top_k", "top_p", "top_p_of_top_k"

#: Lists of ids.
LISTS = ("prompt", "more_eos_ids", "suppress_tokens", "begin_suppress_tokens")

#: Real numbers: field -> what fits, and in words.
REAL = {
    "alpha": (lambda x: 0 <= x < math.inf, "at least 0"),
    "temperature": (lambda x: 0 < x < math.inf, "above 0"),
    "top_p": (lambda x: 0 < x <= 1, "above 0 and at most 1")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """Every number and choice of a search. Frozen, checked when it is made.

    Attributes:
        method: "greedy", "beam" or "sample".
        bos_id, eos_id: the ids that a target begins and ends with.
        more_eos_ids: other ids that end it as well.
        max_tokens: the most tokens after the bos, the eos included.
        beam: W, how many hypotheses are kept; 1 is greedy search.
        length_rule: what a hypothesis' sum of log-probabilities is divided by,
            L being its tokens after the bos, and when a row is done: "paper",
            ((5 + L) / 6)^α, once no hypothesis alive can be better at any
            length (Wu et al. 2016, eq. 14); "hf_true", "hf_false" and
            "hf_never", L^α, as Hugging Face's ``early_stopping``: at the W-th
            that has finished, once none can be better at its present length,
            or at any length; "none", 1.
        alpha: α.
        finishing: which of a step's best candidates (2W where one id ends) may
            finish: "all"; "top", the best W, as in Hugging Face; "first", of
            these as many as W still lacks, as in fairseq, where none takes
            the place of one that has finished; or "narrowing", only the best
            as many as W still lacks finish or go on, as in Marian, where the
            beam is narrower by each that has finished.
        unfinished: what becomes of hypotheses alive at the greatest length:
            "compete", they finish there as they are; "fallback", they are
            the answer where nothing has finished, their log p undivided, as
            in Tensor2Tensor and Flax's examples.
        min_tokens: the least tokens after the bos, the eos included.
        prompt: the ids that follow the bos, whatever the model says.
        forced_bos_id, forced_eos_id: the first token behind them and the last
            one of max_tokens, in the same way; None where the model decides.
        suppress_tokens, begin_suppress_tokens: ids that are never generated,
            and those that are not the first where the model decides.
        no_repeat_ngram: n, where no n tokens may stand twice in a target, the
            bos counted; 0 where they may.
        allow_padding: whether padding may be generated.
        temperature: the divisor of logits before sampling.
        top_k: sample from the k most likely tokens; 0 from all.
        top_p: sample from the most likely that together reach p; 1 from all.
        top_p_of_top_k: whether p is a part of what top_k leaves, as in Hugging
            Face, and not of all probability.
        seed: from which samples follow.
        cached: whether keys and values are kept from token to token.
    """

    method: str = "greedy"
    bos_id: int = 1
    eos_id: int = 2
    max_tokens: int = 64
    beam: int = 4
    length_rule: str = "paper"
    alpha: float = 0.6
    finishing: str = "all"
    unfinished: str = "compete"
    min_tokens: int = 1
    prompt: tuple = ()
    forced_bos_id: int | None = None
    forced_eos_id: int | None = None
    suppress_tokens: tuple = ()
    begin_suppress_tokens: tuple = ()
    more_eos_ids: tuple = ()
    no_repeat_ngram: int = 0
    allow_padding: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    top_p_of_top_k: bool = False
    seed: int = 0
    cached: bool = True

    def __post_init__(self):
        for field, allowed in CHOICES.items():
            one_of(getattr(self, field), allowed, field)
        for field, least in WHOLE.items():
            _whole(getattr(self, field), least, field)
        for field in ("forced_bos_id", "forced_eos_id"):
            if getattr(self, field) is not None:
                _whole(getattr(self, field), 0, field)
        for field in LISTS:
            ids = getattr(self, field)
            if not isinstance(ids, (tuple, list)):
                raise InputError(f"{field} is {ids!r}; choose a list of ids.")
            for each in ids:
                _whole(each, 0, field)
            object.__setattr__(self, field, tuple(ids))
        for field, (fits, words) in REAL.items():
            value = getattr(self, field)
            if not is_real(value) or not fits(value):
                raise InputError(
                    f"{field} is {value!r}; choose a number {words}.")
        try:
            self.penalty(self.max_tokens)
        except OverflowError:
            raise InputError(
                f"alpha is {self.alpha!r}, and {self.max_tokens} tokens to "
                "that power are no number; choose a smaller one.") from None
        for field in ("cached", "allow_padding", "top_p_of_top_k"):
            if not isinstance(getattr(self, field), bool):
                raise InputError(
                    f"{field} is {getattr(self, field)!r}; choose True or "
                    "False.")

    @classmethod
    def of(cls, settings):
        """The search that a user asks for by some fields, a dict.

        A beam of more than 1 is beam search; without one it is greedy.

        Raises:
            InputError: there is no such field, or one that the method ignores.
        """
        for field in settings:
            one_of(field, [each.name for each in dataclasses.fields(cls)],
                   "setting")
        beam = settings.get("beam", 1)
        several = is_whole(beam) and beam > 1
        method = settings.get("method", "beam" if several else "greedy")
        if several and method != "beam":
            raise InputError(
                f"beam is {beam}, but method is {method!r}; leave out one.")
        for field in SAMPLING:
            if field in settings and method != "sample":
                raise InputError(
                    f"{field} is for samples, but method is {method!r}; give "
                    "method='sample', or leave it out.")
        width = {} if method == "beam" else {"beam": 1}
        return cls(**{"method": method, **width, **settings})

    def replace(self, **changes):
        """A copy with some fields changed, checked again."""
        return dataclasses.replace(self, **changes)

    def check(self, config):
        """Raise InputError where a model of ``config`` cannot do it."""
        if self.max_tokens > config.max_length:
            raise InputError(
                f"max_tokens is {self.max_tokens}, but the position table has "
                f"{config.max_length} rows; choose at most that.")
        for each in self.eos_ids:
            padding = each == config.pad_id and not self.allow_padding
            if each >= config.target_vocab or padding:
                raise InputError(
                    f"eos_id {each} is padding or not in the vocabulary; "
                    f"choose another id below {config.target_vocab}.")
        if len(self.eos_ids) >= config.target_vocab:
            raise InputError(
                "every word of the vocabulary is an eos_id; leave out at "
                "least one, or nothing is written.")
        if self.bos_id == config.pad_id and config.position_padding:
            raise InputError(
                f"bos_id {self.bos_id} is padding, which has no position in "
                "this model; choose another id.")
        if self.allow_padding and config.position_padding:
            raise InputError(
                "allow_padding is True, but padding has no position in this "
                "model; choose False.")
        for field, ids in (
                ("bos_id", (self.bos_id,)),
                ("prompt", self.prompt),
                ("forced_bos_id", (self.forced_bos_id or 0,)),
                ("forced_eos_id", (self.forced_eos_id or 0,)),
                ("suppress_tokens", self.suppress_tokens),
                ("begin_suppress_tokens", self.begin_suppress_tokens)):
            if ids and max(ids) >= config.target_vocab:
                raise InputError(
                    f"{field} {max(ids)} is not in the vocabulary; choose an "
                    f"id below {config.target_vocab}.")
        return self

    @property
    def width(self):
        """How many hypotheses a row has: W of a beam, else 1."""
        return self.beam if self.method == "beam" else 1

    @property
    def eos_ids(self):
        """Every id that ends a target, each once: a tuple."""
        return tuple(dict.fromkeys((self.eos_id, *self.more_eos_ids)))

    @property
    def candidates(self):
        """How many continuations a beam looks at: one is greedy search.

        Each hypothesis may end in every way, and W others must remain.
        """
        return 1 if self.beam == 1 else (1 + len(self.eos_ids)) * self.beam

    @property
    def finishers(self):
        """How many of these, the best, may finish."""
        return self.candidates if self.finishing == "all" else self.beam

    @property
    def opening(self):
        """The ids behind the bos that the model does not choose: a tuple."""
        forced = self.forced_bos_id
        return self.prompt + (() if forced is None else (forced,))

    @property
    def first(self):
        """How many tokens are written before the first that it chooses."""
        return 1 + len(self.opening)

    def forced(self, written):
        """The id that has to follow ``written`` tokens, or None."""
        if written == self.max_tokens and self.forced_eos_id is not None:
            return self.forced_eos_id
        return self.opening[written - 1] if written < self.first else None

    def banned(self, written):
        """The ids that may not follow ``written`` tokens: a tuple."""
        return (self.suppress_tokens
                + (self.begin_suppress_tokens if written == self.first else ())
                + (self.eos_ids if written < self.min_tokens else ()))

    def penalty(self, length):
        """What the log-probability of L tokens is divided by."""
        match self.length_rule:
            case "paper":
                return ((5 + length) / 6)**self.alpha
            case "none":
                return 1.0
            case _:
                return float(length)**self.alpha

    def bound(self, length):
        """The penalty that gives a hypothesis alive its best score."""
        present = self.length_rule == "hf_false"
        return self.penalty(length if present else self.max_tokens)


def an_id_beside(ids):
    """The lowest that is none of ids.

    As the id of padding it leaves a prompt whole: there, no token is padding.
    """
    return next(i for i in range(len(ids) + 1) if i not in ids)


def _whole(value, least, field):
    """Raise InputError unless a field's value is a whole number."""
    if not is_whole(value) or not least <= value < 2**63:
        raise InputError(
            f"{field} is {value!r}; choose a whole number of at least {least} "
            "and below 2⁶³.")
