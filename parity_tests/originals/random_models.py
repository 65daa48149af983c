"""Small models of a dialect, drawn from a seed: sizes, words and inputs."""

import dataclasses
import typing

import numpy as np

from transformer_contract.dialects.rows import names_of


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a model is asked: ids, no padding in the target but a begin.

    Attributes:
        source: int64 [B S], padded at the right; in a decoder alone None.
        target: int64 [B T], what the decoder reads; in an encoder alone None.
        labels: int64 [B T], the next tokens; in an encoder alone [B S], what
            each of its tokens may be; padding's id where there is nothing to
            guess.
        pad_id: the id of padding.
        types: int64 [B S], segments, 0 of padding, or None. ``source`` is
            without them.
    """

    source: np.ndarray | None
    target: np.ndarray | None
    labels: np.ndarray
    pad_id: int
    types: np.ndarray | None = None

    def seen(self, vectors):
        """A source's vectors [B S D], those of padding masked.

        What padding attends to, and is, nothing reads; each has its own.
        """
        hidden = (self.source == self.pad_id)[..., None]
        return np.ma.array(vectors, mask=np.broadcast_to(
            hidden, vectors.shape))


def described(dialect, seed, widths=(4, 6, 8, 10), **fixed):
    """A small model in the dialect's own words.

    Args:
        dialect, seed: whose, and from which sizes and words are drawn.
        widths: of a head, to be drawn from.
        fixed: words that are not drawn.
    """
    draw: typing.Any = np.random.default_rng([7, seed])
    heads, width = int(draw.integers(1, 4)), int(draw.choice(widths))
    heads = max(heads, 8 // width)  # a norm of few features magnifies rounding
    fields = {
        "n_heads": heads, "d_model": heads * width,
        "d_ff": int(draw.integers(5, 40)), "d_head": 2 * int(
            draw.integers(2, 6)),
        "n_kv_heads": heads if draw.integers(2) else 1,
        "n_encoder_layers": int(draw.integers(1, 4)),
        "n_decoder_layers": int(draw.integers(1, 4)),
        "source_vocab": int(draw.integers(11, 60)), "dropout": 0.0,
        "max_length": int(draw.integers(18, 40)),
        "token_types": int(draw.integers(2, 4)),
    }
    fields["target_vocab"] = fields["source_vocab"]
    fields["pad_id"] = int(draw.integers(fields["source_vocab"]))
    words = dict(dialect.defaults)
    for key, means in dialect.keys.items():
        if isinstance(means, dict):
            choice = list(means)[int(draw.integers(len(means)))]
            pairs = zip(key, choice) if isinstance(key, tuple) else [
                (key, choice)]
            words |= {each: word for each, word in pairs if word is not None}
        elif names_of(means)[0] in fields:
            words[key] = fields[names_of(means)[0]]
    return {**words, **dialect.only, **fixed}


def question(config, seed):
    """Token ids for a model of a configuration, without its padding's id."""
    draw: typing.Any = np.random.default_rng([11, seed])
    stacks, segments = config.stacks, config.token_types
    batch, longest = int(draw.integers(1, 4)), config.max_length - 1

    def ids(vocab, length):
        tokens = draw.integers(0, vocab - 1, (batch, length))
        return tokens + (tokens >= config.pad_id)

    source = ids(config.source_vocab, int(draw.integers(2, longest)))
    for row in source[1:]:
        row[int(draw.integers(1, len(row))):] = config.pad_id
    target = ids(config.target_vocab, int(draw.integers(2, longest)) + 1)
    types = draw.integers(0, max(1, segments), source.shape)
    types[source == config.pad_id] = 0
    if stacks == "encoder":
        labels = np.where(source == config.pad_id, config.pad_id,
                          ids(config.target_vocab, source.shape[1]))
        return Asked(source, None, labels, config.pad_id,
                     types if segments else None)
    return Asked(None if stacks == "decoder" else source, target[:, :-1],
                 target[:, 1:], config.pad_id)


def sources(vocab, pad_id, seed, rows, padded=True):
    """Ids [B S] of the inputs of a search, padded at the right."""
    draw: typing.Any = np.random.default_rng([17, seed])
    length = int(draw.integers(2, 6))
    ids = draw.integers(0, vocab - 1, (rows, length))
    ids += ids >= pad_id
    for row in ids[1:] if padded else ():
        row[int(draw.integers(1, length + 1)):] = pad_id
    return ids


def asked(config, seed):
    """The configuration of a proof's model, and what the model is asked."""
    return config, question(config, seed)


def asked_behind_padding(config, seed):
    """As ``asked``, but a target begins with padding's id."""
    drawn = question(config, seed)
    target = drawn.target.copy()
    target[:, 0] = config.pad_id
    return config, dataclasses.replace(drawn, target=target)


def random_arrays(arrays, seed):
    """Arrays of these shapes that hide nothing: no scale 1, no bias 0."""
    draw = np.random.default_rng([13, seed])
    made = {}
    for name in sorted(arrays):
        array = arrays[name]
        values = draw.normal(size=array.shape)
        if array.ndim > 1 and min(array.shape) > 1:
            first = array.shape[0]
            values *= (3 / (first + array.size // first))**0.5
        elif "orm" in name and not name.endswith(("bias", "beta")):
            values = 1 + values / 4
        else:
            values /= 4
        made[name] = values
    return made
