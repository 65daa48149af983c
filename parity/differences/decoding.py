"""Known differences of decoding and tokenizers."""

import numpy as np

from parity.differences.asking import add
from parity.differences.tensors import as_numpy, jax_array, word


def _torch_argmax():
    import torch
    return torch.zeros(1000).argmax().item()


def _keras_argmax():
    from keras import ops
    return int(ops.argmax(np.zeros(1000, np.float32)))


def _jax_argmax():
    return int(jax_array(np.zeros(1000)).argmax())


add("ties_of_argmax", "decoding",
    "The largest of a thousand equal numbers: the first, in all of them.",
    {"numpy": (0, lambda: int(np.zeros(1000).argmax())),
     "torch": (0, _torch_argmax), "keras": (0, _keras_argmax),
     "jax": (0, _jax_argmax)})


def _in_order(indices):
    return word(list(map(int, indices)) == [0, 1, 2, 3], "the first four",
                "some four")


def _torch_top():
    import torch
    return _in_order(torch.zeros(1000).topk(4).indices)


def _keras_top():
    from keras import ops
    return _in_order(as_numpy(ops.top_k(np.zeros(1000, np.float32), 4)[1]))


def _jax_top():
    import jax
    return _in_order(jax.lax.top_k(jax_array(np.zeros(1000)), 4)[1])


add("ties_of_top_k", "decoding",
    "The four largest of a thousand equal numbers: torch promises no order "
    "and keeps none, so that beams with equal scores part.",
    {"torch": (
          "some four", _torch_top), "keras": ("the first four", _keras_top),
     "jax": ("the first four", _jax_top)})


def _winner(score):
    """Of two hypotheses, the one that a rule prefers."""
    short, long = score(-4.0, 4), score(-5.2, 7)
    return word(short > long, "the short one", "the long one")


add("length_rule", "decoding",
    "A hypothesis of 4 tokens and log-probability -4 against one of 7 and "
    "-5.2. The sum and the paper's ((5 + L) / 6)^0.6 prefer the short one, "
    "the mean and an exponent of 1 the long one.",
    {"numpy sum": (
          "the short one", lambda: _winner(lambda total, length: total)),
     "numpy mean": ("the long one", lambda: _winner(
          lambda total, length: total / length)),
     "numpy ((5 + L) / 6)^0.6": ("the short one", lambda: _winner(
          lambda total, length: total / ((5 + length) / 6) ** 0.6)),
     "numpy ((5 + L) / 6)^1": ("the long one", lambda: _winner(
          lambda total, length: total / ((5 + length) / 6)))})


def _first_beams(live):
    """How many different tokens two beams have after their first step."""
    log_probs = np.log([0.5, 0.3, 0.2])
    start = np.array([0.0, 0.0 if live == 2 else -np.inf])
    scores = (start[:, None] + log_probs).ravel()
    best = np.argsort(-scores, kind="stable")[:2]
    return len(set(best % 3))


add("live_beams_at_first", "decoding",
    "All beams begin with the same token. If all count at the first step "
    "they choose the same one, and stay copies of each other: here the "
    "different tokens of two beams.",
    {"numpy one beam live": (2, lambda: _first_beams(1)),
     "numpy two beams live": (1, lambda: _first_beams(2))})


def _padding_side(row):
    return tuple(int(i) for i in row)


def _torch_padded():
    import torch
    return _padding_side(torch.nn.utils.rnn.pad_sequence(
        [torch.tensor([5, 6]), torch.tensor([1, 2, 3])],
        batch_first=True)[0])


def _keras_padded():
    import keras
    return _padding_side(keras.utils.pad_sequences([[5, 6], [1, 2, 3]])[0])


def _words_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    tokenizer = Tokenizer(models.WordLevel(
        {"[PAD]": 0, "a": 1, "b": 2, "c": 3, "[UNK]": 4},
        unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def _tokenizers_padded():
    tokenizer = _words_tokenizer()
    tokenizer.enable_padding()
    return _padding_side(tokenizer.encode_batch(["b c", "a b c"])[0].ids)


add("padding_side", "decoding",
    "A row of two tokens padded to three: Keras pads on the left, which "
    "moves every position, the others on the right. All pad with 0, also "
    "where 0 is a word.",
    {"torch pad_sequence": ((5, 6, 0), _torch_padded),
     "keras pad_sequences": ((0, 5, 6), _keras_padded),
     "tokenizers": ((2, 3, 0), _tokenizers_padded)})


def _keras_truncated():
    import keras
    return _padding_side(keras.utils.pad_sequences([[1, 2, 3]], maxlen=2)[0])


def _tokenizers_truncated():
    tokenizer = _words_tokenizer()
    tokenizer.enable_truncation(2)
    return _padding_side(tokenizer.encode("a b c").ids)


add("truncation_side", "decoding",
    "Tokens 1, 2, 3 cut to two: Keras keeps the end, Tokenizers the "
    "beginning.",
    {"keras pad_sequences": ((2, 3), _keras_truncated),
     "tokenizers": ((1, 2), _tokenizers_truncated)})


def _decoded(special):
    tokenizer = _words_tokenizer()
    if special:
        tokenizer.add_special_tokens(["[PAD]"])
    return tokenizer.decode([0, 1, 2])


def _prefixed():
    from tokenizers import pre_tokenizers
    return pre_tokenizers.ByteLevel().pre_tokenize_str("a")[0][0]


add("decoded_tokens", "decoding",
    "Decoding leaves out special tokens unless told not to, and only those "
    "that were registered as special.",
    {"tokenizers registered": ("a b", lambda: _decoded(True)),
     "tokenizers not registered": ("[PAD] a b", lambda: _decoded(False))})


add("space_before_the_first_word", "decoding",
    "ByteLevel puts a space, shown as Ġ, before the first word unless told "
    "not to, so that a sentence and its own beginning are cut alike or not.",
    {"tokenizers ByteLevel": ("Ġa", _prefixed)})
