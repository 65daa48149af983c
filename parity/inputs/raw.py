"""What a model's inputs were made of: texts, images and sounds.

A function that makes a model may return a fourth thing beside the model, its
inputs and keywords: {"text": …, "tokenizer": …, "image": …, "audio": …,
"rate": …}, any of these. A dump has them as ``raw/image`` and so on. They are
looked at only where the inputs of two models differ.
"""

import numpy as np

from parity_io.errors import InputError, one_of

TEXT, TOKENIZER, IMAGE, AUDIO, RATE, PIECES = KINDS = (
    "text", "tokenizer", "image", "audio", "rate", "pieces")

#: How tokenizers are asked what an id stands for.
ASKED = ("convert_ids_to_tokens", "id_to_token", "IdToPiece", "id_to_piece")


def checked(raw, name):
    """Raw inputs as they are kept: texts, arrays and numbers.

    Args:
        raw: the fourth thing that a function returned.
        name: of that function.

    Raises:
        InputError: it is no dict of such things.
    """
    if not isinstance(raw, dict):
        raise InputError(
            f"the fourth thing that {name} returned must be a dict of what "
            f"came before the model, such as {{'text': …}}; it is a "
            f"{type(raw).__name__}.")
    made = {}
    for key, value in raw.items():
        one_of(key, KINDS, f"what came before the model in {name}")
        if key == TEXT and not isinstance(value, str):
            value = [str(each) for each in value]
        elif key in (IMAGE, AUDIO):
            value = np.asarray(value.numpy() if hasattr(value, "numpy")
                               else value)
        made[key] = value
    return made


def kept(raw, inputs):
    """Raw inputs with the pieces of a tokenizer instead of it.

    Args:
        raw: what ``checked`` returned.
        inputs: the model's input arrays, whose whole numbers are asked for.
    """
    tokenizer = raw.get(TOKENIZER)
    made = {key: value for key, value in raw.items() if key != TOKENIZER}
    ask = next((getattr(tokenizer, name) for name in ASKED
                if hasattr(tokenizer, name)), None)
    if ask is not None:
        ids = {int(each) for array in inputs.values()
               if array.dtype.kind in "iu" and array.ndim == 2
               for each in np.unique(array)}
        named = {each: ask(each) for each in sorted(ids)}
        made[PIECES] = {each: str(piece) for each, piece in named.items()
                        if piece is not None}
    return made
