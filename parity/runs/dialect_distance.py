"""How far the outputs of two dialects part on a real sentence.

It is the longest of the committed ones. Both have the same sizes and, where a
weight has the same name and shape, the same weights; what only one of them has
is drawn for it.
"""

from transformer_contract.batch import Batch
from transformer_contract.dialects.rows import names_of
from transformer_contract.tokenizer import Tokenizer, read_pairs
from transformer_contract.weights import initial_weights
from parity import ports
from parity.numerics.distance import finite_distance
from parity.numerics.words import number

#: The sizes at which two are compared.
SIZES = {"d_model": 128, "n_heads": 8, "d_ff": 512, "n_encoder_layers": 3,
         "n_decoder_layers": 3, "max_length": 256, "d_head": 16,
         "n_kv_heads": 8, "dropout": 0.0}


def describe_distance(one, other):
    """A sentence on how far two dialects' outputs differ."""
    tokenizer = Tokenizer.load()
    sources, targets = max(zip(*read_pairs()), key=lambda pair: len(pair[0]))
    batch = Batch.of_text([sources], [targets], tokenizer)
    found = []
    weights: dict = {}
    for dialect in (one, other):
        config = at_one_size(dialect, tokenizer)
        if config.stacks != "both":
            return (f"{dialect.name} is one stack alone, so that on a pair of "
                    "sentences there is nothing to compare.")
        weights = initial_weights(config, known=weights)
        model = ports.engine("numpy").build("transformer", config, weights)
        steps = ports.engine("numpy").forward(model, *batch)
        found.append((steps["memory"], steps["output"]))
    words = []
    for what, (a, b) in zip(("memory", "output"), zip(*found)):
        words.append(f"{what} by {number(distance(a, b))}")
    return (f"On {sources!r}, with equal weights and sizes (d "
            f"{SIZES['d_model']}, {batch.source.shape[1]} and "
            f"{batch.target.shape[1]} tokens), {one.name} and {other.name} "
            f"part in {' and '.join(words)} of their norm.")


def distance(a, b):
    """‖a - b‖ / ‖a‖."""
    return finite_distance(b, a)


def at_one_size(dialect, tokenizer, sizes=SIZES):
    """A dialect's configuration at sizes, for the committed tokenizer."""
    fields = sizes | {"source_vocab": tokenizer.vocab_size,
                      "target_vocab": tokenizer.vocab_size,
                      "pad_id": tokenizer.pad_id}
    described = {key: fields[names_of(means)[0]]
                 for key, means in dialect.keys.items()
                 if not isinstance(means, dict)
                 and names_of(means)[0] in fields}
    return dialect.config(described).replace(pad_id=tokenizer.pad_id)
