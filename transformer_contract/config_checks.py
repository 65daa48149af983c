"""Which values a TransformerConfig may have; the others raise InputError."""

import dataclasses
import math

from parity_io.errors import InputError, is_real, is_whole, one_of

#: Fields that are whole numbers -> the smallest that each may be.
WHOLE = dict.fromkeys((
    "source_vocab", "target_vocab", "d_model", "n_heads", "d_ff",
    "n_encoder_layers", "n_decoder_layers", "max_length", "d_head",
    "n_kv_heads", "source_max_length"), 1) | dict.fromkeys(
        ("pad_id", "position_start", "token_types"), 0) | dict.fromkeys(
            ("relative_buckets", "relative_distance"), 1)

#: Those that may be None, so that they follow from others.
COUNTS = ("d_head", "n_kv_heads", "source_max_length")

#: The most numbers of a weight, and of the table of positions, which no file
#: holds; in float64 16 GiB and half a GiB.
LARGEST, LARGEST_POSITIONS = 2**31, 2**26

#: The most layers of a stack: four times DeepNet's 1,000 (Wang et al. 2022).
DEEPEST = 2**12


def check(config, choices):
    """Raise InputError with what to change, unless a config can work.

    Args:
        config: a TransformerConfig.
        choices: {field: the words that it may have}.
    """
    for field, smallest in WHOLE.items():
        if field not in COUNTS or getattr(config, field) is not None:
            whole(config, field, smallest)
    array_sizes(config)
    depths(config)
    for field, allowed in choices.items():
        one_of(getattr(config, field), allowed, field)
    switches(config)
    reals(config)
    heads(config)
    attention_positions(config)
    vocabularies(config)


def whole(config, field, smallest):
    """Refuse what is no whole number, or a smaller one."""
    value = getattr(config, field)
    if not is_whole(value) or value < smallest:
        raise InputError(
            f"{field} is {value!r}; choose a whole number of at least "
            f"{smallest}.")


def real(config, field):
    """A field's value, a real number."""
    value = getattr(config, field)
    if not is_real(value):
        raise InputError(f"{field} is {value!r}; choose a number.")
    if abs(value) > 1e300:
        raise InputError(f"{field} is too large; choose a number that "
                         "float64 has.")
    return value


def array_sizes(config):
    """Refuse sizes whose arrays no machine would hold."""
    for field, most in (
            ("source_vocab", LARGEST), ("target_vocab", LARGEST),
            ("d_model", LARGEST), ("d_ff", LARGEST),
            ("token_types", LARGEST),
            ("max_length", LARGEST_POSITIONS),
            ("source_max_length", LARGEST_POSITIONS),
            ("position_start", LARGEST_POSITIONS)):
        if (getattr(config, field) or 0) * config.d_model > most:
            raise InputError(
                f"{field} is {getattr(config, field)} and d_model "
                f"{config.d_model}, which makes an array of more than "
                f"{most} numbers; choose smaller sizes.")
    if (config.d_head
            and config.n_heads * config.d_head * config.d_model > LARGEST):
        raise InputError(
            f"n_heads is {config.n_heads}, d_head {config.d_head} and d_model "
            f"{config.d_model}, which makes an array of more than {LARGEST} "
            "numbers; choose smaller sizes.")


def depths(config):
    """Refuse stacks of more layers than anybody would wait for."""
    for field in ("n_encoder_layers", "n_decoder_layers"):
        if getattr(config, field) > DEEPEST:
            raise InputError(f"{field} is {getattr(config, field)}; choose "
                             f"at most {DEEPEST}.")


def switches(config):
    """Refuse what is neither on nor off, and a rounding without its norm."""
    if config.norm_rounding != "none" and config.norm != "rms":
        raise InputError(
            f"norm_rounding {config.norm_rounding!r} is of norm 'rms' alone, "
            f"and norm is {config.norm!r}; set norm_rounding='none'.")
    for field in dataclasses.fields(config):
        if field.type is bool and not isinstance(
                getattr(config, field.name), bool):
            raise InputError(f"{field.name} must be True or False.")
    if not isinstance(config.output_bias, bool | None):
        raise InputError("output_bias must be None, True or False.")


def reals(config):
    """Refuse probabilities and epsilons that are none."""
    for field in ("dropout", "label_smoothing"):
        if not 0 <= real(config, field) < 1:
            raise InputError(
                f"{field} is {getattr(config, field)}; choose a probability "
                "of at least 0 and less than 1.")
    for field in ("norm_eps", "final_norm_eps"):
        if not 0 < real(config, field) < math.inf:
            raise InputError(
                f"{field} is {getattr(config, field)}; choose a positive "
                "number, such as 1e-6.")


def heads(config):
    """Refuse a d_model that does not divide into heads and pairs."""
    if config.d_head is None and config.d_model % config.n_heads:
        raise InputError(
            f"d_model {config.d_model} does not divide into n_heads "
            f"{config.n_heads}; make d_model a multiple of n_heads, or give "
            "d_head.")
    if config.n_heads % config.kv_heads:
        raise InputError(
            f"n_kv_heads {config.n_kv_heads} does not divide n_heads "
            f"{config.n_heads}; choose a divisor, so that as many heads "
            "share each key and value.")
    if config.d_model % 2:
        raise InputError(
            f"d_model {config.d_model} is odd, but positions pair a sine "
            "with a cosine; make d_model even.")


def attention_positions(config):
    """Refuse what rotary and relative positions cannot be made of."""
    if config.positions.startswith("rotary") and config.d_k % 2:
        raise InputError(
            f"heads are {config.d_k} wide, but rotary positions turn pairs "
            "of features; make d_head even.")
    if not 0 < real(config, "rotary_base") < math.inf:
        raise InputError(
            f"rotary_base is {config.rotary_base}; choose a positive "
            "number, such as 10000.")
    buckets = config.relative_buckets
    if buckets % 2 or not 4 <= buckets <= 1024:
        raise InputError(
            f"relative_buckets is {buckets}; choose an even "
            "number from 4 to 1024, half of it for each direction.")
    if config.relative_distance <= buckets // 2:
        raise InputError(
            f"relative_distance is {config.relative_distance}, but the first "
            f"{buckets // 2} distances have a bucket each; "
            "choose a greater one.")


def vocabularies(config):
    """Refuse tables that cannot be shared, and ids outside of them."""
    least = {"uniform": 1, "others": 2, "kl": 3}[config.smoothing]
    if config.target_vocab < least:
        raise InputError(
            f"smoothing {config.smoothing!r} moves mass to other tokens, but "
            f"target_vocab is {config.target_vocab}; choose at least "
            f"{least}.")
    if config.stacks != "both" and config.embeddings_tied:
        raise InputError(
            f"a model of one stack has one embedding, and tied is "
            f"{config.tied!r}; choose 'none' or 'output'.")
    sizes = (f"source_vocab is {config.source_vocab} and target_vocab "
             f"{config.target_vocab}; make them equal or set tied='none'.")
    if config.source_vocab != config.target_vocab:
        if config.stacks == "encoder" and config.output_tied:
            raise InputError(
                f"the projection is the source's table, but {sizes}")
        if config.embeddings_tied:
            raise InputError(f"tied embeddings share one table, but {sizes}")
    if config.pad_id >= min(config.source_vocab, config.target_vocab):
        raise InputError(
            f"pad_id {config.pad_id} is not in both vocabularies; choose an "
            "id below source_vocab and target_vocab.")
