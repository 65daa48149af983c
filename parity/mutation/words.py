"""Words that are easily taken for one another: the twin of a name or text."""

import transformer_contract.config
import transformer_contract.generation
import transformer_contract.training

#: Whole names, and the other of the pair.
PAIRS = (
    ("n_heads", "d_k"), ("norm_eps", "final_norm_eps"), ("d_model", "d_ff"),
    ("mask", "memory_mask"), ("right", "other"), ("alive", "finished"),
    ("float64", "float32"), ("int64", "int32"), ("uint64", "uint32"),
    ("sin", "cos"), ("exp", "log"), ("m", "v"), ("x", "y"),
    ("memory", "x"), ("zeros", "ones"), ("zeros_like", "ones_like"),
    ("sum", "mean"), ("softmax", "log_softmax"), ("all", "any"),
    ("weight", "bias"), ("kernel", "bias"), ("scale", "bias"),
    ("top_k", "top_p"), ("parents", "which"),
)

#: Parts of names, between underlines, likewise.
PARTS = (
    ("source", "target"), ("encoder", "decoder"), ("before", "after"),
    ("min", "max"), ("argmin", "argmax"), ("minimum", "maximum"),
    ("query", "key"), ("value", "key"), ("values", "keys"), ("low", "high"),
    ("x0", "x1"), ("beta1", "beta2"), ("correction1", "correction2"),
    ("bos", "eos"), ("self", "cross"), ("inner", "outer"),
    ("sources", "targets"),
)


def both_ways(pairs):
    """Each word's other one; of several pairs, the first that has it."""
    found = {}
    for one, other in pairs:
        found.setdefault(one, other)
        found.setdefault(other, one)
    return found


WHOLE, PART = both_ways(PAIRS), both_ways(PARTS)


def chosen():
    """Each word of a choice -> the next word of that choice."""
    found = {}
    for choices in (transformer_contract.config.CHOICES,
                    transformer_contract.generation.CHOICES,
                    transformer_contract.training.CHOICES):
        for allowed in choices.values():
            found |= zip(allowed, (*allowed[1:], allowed[0]))
    return found


CHOSEN = chosen()


def twin(name):
    """The name that this one is taken for, or None."""
    if name in WHOLE:
        return WHOLE[name]
    parts = [PART.get(part, part) for part in name.split("_")]
    other = "_".join(parts)
    return other if other != name else None


def another(text):
    """Another text: of the same choice, the twin's, or one nobody knows."""
    return CHOSEN.get(text) or twin(text) or f"{text}_"
