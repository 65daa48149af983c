"""The tokenizer of a Marian of Hugging Face, over the library sentencepiece.

Such a folder has three files: ``source.spm`` and ``target.spm``, two models of
sentencepiece, and ``vocab.json``, in which the pieces of both have one id each.
What sacremoses would do to a text's punctuation before is not done.
"""

import hashlib
import importlib.util
import json
import pathlib

from parity_io.errors import InputError
from parity_io.files import check_ordinary, read_text
from transformer_contract.tokenizer import Tokenizer

SOURCE, TARGET, VOCABULARY = FILES = ("source.spm", "target.spm", "vocab.json")


def stored(folder):
    """Whether a folder has such a tokenizer and no ``tokenizer.json``."""
    folder = pathlib.Path(folder)
    return not (folder / "tokenizer.json").exists() and all(
        (folder / name).is_file() for name in FILES)


class Pieces(Tokenizer):
    """A tokenizer of two models of sentencepiece and one vocabulary.

    Its face is Tokenizer's; a source's ids end in the eos id.

    Raises:
        InputError: a file cannot be read, the vocabulary lacks a special token,
            or sentencepiece is not installed.
    """

    framed = True

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        if importlib.util.find_spec("sentencepiece") is None:
            raise InputError(
                f"the tokenizer of {str(folder)!r} needs the library "
                "sentencepiece; pip install sentencepiece.")
        import sentencepiece
        for name in FILES:
            check_ordinary(folder / name)
        try:
            self.models = [sentencepiece.SentencePieceProcessor(
                model_file=str(folder / name)) for name in (SOURCE, TARGET)]
            self.ids = json.loads(read_text(folder / VOCABULARY))
            self.pieces = {int(n): piece for piece, n in self.ids.items()}
        except (OSError, RuntimeError, ValueError, AttributeError,
                TypeError) as error:
            raise InputError(
                f"the tokenizer of {str(folder)!r} cannot be read "
                f"({str(error)[:80]}); fetch the whole folder.") from None
        self.eos_id, self.unknown_id, self.pad_id = (
            self._special_id(token) for token in ("</s>", "<unk>", "<pad>"))
        self.bos_id, self.vocab_size = None, len(self.ids)

    def _special_id(self, token):
        if not isinstance(self.ids.get(token), int):
            raise InputError(
                f"{VOCABULARY!r} has no token {token!r}; fetch it again.")
        return self.ids[token]

    @property
    def last_id(self):
        """The highest id that a token has."""
        return max(self.pieces)

    @property
    def digest(self):
        """SHA-256 of the vocabulary."""
        return hashlib.sha256(json.dumps(
            self.ids, sort_keys=True).encode()).hexdigest()

    def encode(self, text):
        """The ids of a text, and the eos id.

        A language's code at its beginning, such as >>fr<<, is one token.
        """
        code, end = [], text.find("<<")
        if text.startswith(">>") and end != -1:
            code, text = [text[:end + 2]], text[end + 2:]
        return [self.ids.get(piece, self.unknown_id) for piece in (
            *code, *self.models[0].encode(text, out_type=str))] + [self.eos_id]

    def decode(self, ids):
        """The text of ids; special tokens are left out."""
        special = {self.pad_id, self.eos_id, self.unknown_id}
        return self.models[0].decode_pieces([
            self.pieces.get(int(i), "") for i in ids
            if i not in special]).replace("\u2581", " ").strip()

    def tokens(self, ids):
        """Each id's piece, for display."""
        return [self.pieces.get(int(i), "") for i in ids]
