"""Where things stand: the folders of the project, its tests by file name."""

import pathlib

from parity import ports

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
DATA = TESTS / "data"
VECTORS = DATA / "vectors"
PEERS = DATA / "peers"

REFERENCE = ROOT / "reference_numpy"
PORTS = {name: ROOT / f"impl_{name}" for name in ports.known_ports()}

#: In the reference alone: a framework has its own, or needs none.
REFERENCE_ONLY = {"bpe.py", "linear.py", "dialects/linear.py"}

#: What a reader of the paper's model reads, in this order.
MODEL = ("masks", "embedding", "positional", "attention", "layer_norm",
         "feed_forward", "residual", "projection", "encoder", "decoder",
         "transformer")

#: And of its training and its search.
CORE = (*MODEL, "loss", "dropout", "optimizer", "train", "cache", "search",
        "sample")


def readable(folder):
    """The files of a readable form, the paper's and dialects', by path."""
    paths = [*folder.glob("*.py"), *folder.glob("dialects/*.py")]
    return sorted(path.relative_to(folder).as_posix() for path in paths)


#: engine.py and public.py have the same functions, but talk to frameworks.
MIRRORED = [name for name in readable(REFERENCE) if name not in REFERENCE_ONLY]
READ_SIDE_BY_SIDE = [name for name in MIRRORED
                     if name not in ("engine.py", "public.py")]


def is_there(test):
    """Whether ``test_file.py`` or ``test_file.py::test_name`` is a test."""
    file, _, function = test.partition("::")
    paths = list(TESTS.rglob(file))
    return len(paths) == 1 and (not function or (
        f"def {function}(" in paths[0].read_text(encoding="utf-8")))
