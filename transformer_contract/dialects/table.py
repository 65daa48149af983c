"""Every dialect by its name, and which one a checkpoint is of."""

import re

from transformer_contract.dialects.bart import BART
from transformer_contract.dialects.bert import BERT
from transformer_contract.dialects.fairseq import FAIRSEQ
from transformer_contract.dialects.flax_wmt import FLAX_WMT
from transformer_contract.dialects.gpt2 import GPT2
from transformer_contract.dialects.hf_marian import HF_MARIAN
from transformer_contract.dialects.keras_hub import KERAS_HUB
from transformer_contract.dialects.lessons import LESSONS
from transformer_contract.dialects.llama import LLAMA
from transformer_contract.dialects.marian import MARIAN
from transformer_contract.dialects.t2t import T2T
from transformer_contract.dialects.t5 import T5
from transformer_contract.dialects.torch_nn import TORCH_NN
from transformer_contract.dialects.tutorial import TUTORIAL
from transformer_contract.dialects.whisper import WHISPER
from transformer_contract.dialects.whisper_ct2 import WHISPER_CT2
from parity_io.errors import InputError, one_of

#: Systems whose models have a configuration of their own.
SYSTEMS = {dialect.name: dialect for dialect in (
    TORCH_NN, KERAS_HUB, FLAX_WMT, T2T, MARIAN, HF_MARIAN, FAIRSEQ, BART, BERT,
    GPT2, T5, LLAMA,
    WHISPER, WHISPER_CT2, TUTORIAL,
)}

#: All; the lessons' by the names that their files give themselves.
DIALECTS = {**SYSTEMS, **LESSONS}


def dialect(name):
    """The dialect called ``name``; an unknown name raises InputError."""
    return DIALECTS[one_of(name, DIALECTS, "layout")]


def recognised(checkpoint):
    """The dialect of a Checkpoint, by its configuration or its names.

    Raises:
        InputError: it is of none; what it calls itself is named.
    """
    described = checkpoint.config or {}
    model_type = described.get("model_type")
    for one in SYSTEMS.values():
        if model_type is not None and model_type in one.model_types:
            return one
    if model_type is not None:
        words = [word for one in SYSTEMS.values() for word in one.model_types]
        raise InputError(
            f"{str(checkpoint.path)!r} is a model of type {model_type!r}, "
            f"which has no table; those that have one are {', '.join(words)}.")
    for one in SYSTEMS.values():
        if one.sign and any(re.fullmatch(one.sign, name)
                            for name in checkpoint.arrays):
            return one
    raise InputError(
        f"{str(checkpoint.path)!r} has no config.json that says which system "
        "it is of, and its names are of none that has a table; name the "
        f"system with --as: {', '.join(SYSTEMS)}.")
