"""Any dump: who wrote it is seen in its files."""

import pathlib

from contract.errors import InputError
from contract.files import check_ordinary
from parity.dumps import llama, named
from parity.tracing import folder

#: So many bytes of a text are looked at.
HEAD = 1 << 22


def load(path):
    """The Trace that a dump holds.

    Args:
        path: a folder or file of ``parity dump``, of arrays and names (see
            parity.dumps.named), of llama.cpp, transformers, vLLM or
            Polygraphy.

    Raises:
        InputError: it is none of these, or damaged.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise InputError(f"there is no {str(path)!r}; check the path.")
    check_ordinary(path)
    if (path / folder.MANIFEST).is_file():
        return folder.load(path)
    texts = [each for each in ([path] if path.is_file() else
                               sorted(path.iterdir()))
             if each.suffix in (".txt", ".log", "") and each.is_file()]
    for text in texts:
        if llama.recognised(_head(text)):
            return llama.read(text)
    if named.holds(path):
        return named.read(path)
    raise InputError(
        f"{str(path)!r} is no dump: it has no {folder.MANIFEST}, no .npy, "
        ".npz or .safetensors file, and no output of llama.cpp, transformers, "
        "vLLM or Polygraphy; give one of these.")


def _head(path):
    """The beginning of a text."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(HEAD)
