"""Any dump: who wrote it is seen in its files."""

import pathlib

from parity_io.errors import InputError
from parity_io.files import check_ordinary
from parity.dumps import gguf, hugging_face, llama, named, polygraphy, vllm
from parity.tracing import folder

#: So many bytes of a text are looked at.
HEAD = 1 << 20

#: Endings of texts.
TEXTS = ".txt", ".log", ".json", ".out", ""


def load(path):
    """The Trace that a dump holds.

    Args:
        path: a folder or file of ``parity dump``, of arrays and names (see
            parity.dumps.named), of llama.cpp, transformers, vLLM or
            Polygraphy. A GGUF file beside llama.cpp's text is its parameters.

    Raises:
        InputError: it is none of these, or damaged.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise InputError(f"there is no {str(path)!r}; check the path.")
    check_ordinary(path)
    if (path / folder.MANIFEST).is_file():
        return folder.load(path)
    if step := vllm.step_of(path):
        return vllm.read(step)
    if tree := hugging_face.tree_of(path):
        return hugging_face.read(tree)
    for text in _texts(path):
        head = _head(text)
        if llama.recognised(head):
            return _with_weights(llama.read(text), path)
        if polygraphy.recognised(head) and text.name != polygraphy.INPUTS:
            return polygraphy.read(text)
    if named.holds(path):
        return named.read(path)
    raise InputError(
        f"{str(path)!r} is no dump: it has no {folder.MANIFEST}, no .npy, "
        ".npz, .safetensors or .pt file, and no output of llama.cpp, "
        "transformers, vLLM or Polygraphy; give one of these.")


def _texts(path):
    """The texts that a path is, or has in it."""
    return [each for each in (
        [path] if path.is_file() else sorted(path.iterdir()))
        if each.suffix in TEXTS and each.is_file()
        and each.name != named.NAMES]


def _head(path):
    """The beginning of a text."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(HEAD)


def _with_weights(trace, path):
    """A Trace with the parameters of the GGUF file that lies in a folder."""
    if path.is_dir() and (files := sorted(path.glob("*.gguf"))):
        trace.parameters, notes = gguf.read(files[0])
        trace.notes += notes
    return trace
