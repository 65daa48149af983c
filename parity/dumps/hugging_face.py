"""The trees of transformers' ``model_addition_debugger_context``, as a Trace.

A node is {"module_path", "inputs", "outputs", "children"}. A tensor in it is
{"shape", "dtype", "value"}: its value is what PyTorch prints, line by line, or
the name of a safetensors file beside the tree. Only modules without children
have outputs; the model's own are in such files alone.
"""

import collections
import json
import pathlib
import re

import numpy as np

from parity_io.checkpoints import folder as checkpoints
from parity_io.errors import InputError, visible
from parity.dumps.named import trace_of
from parity.dumps.printed import corners, lean, printed_as

#: What the name of the file ends in.
ENDING = "_debug_tree_FULL_TENSORS.json"

#: A tensor's keys, and how many numbers PyTorch prints as they are.
KEYS, PRINTED = {"shape", "dtype", "value"}, 1000

#: Four digits behind the point, of each number.
DIGITS = 5e-5

NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)|True|False")


def tree_of(path):
    """The file of a tree that a path is, or has in it; None without one."""
    if path.is_dir():
        return next(iter(sorted(path.glob(f"*{ENDING}"))), None)
    return path if path.name.endswith(ENDING) else None


def read(path):
    """The Trace of a tree.

    Raises:
        InputError: it is no JSON of this form, or a file of it is missing.
    """
    try:
        root = json.loads(path.read_text("utf-8"))
        name = root["module_path"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{str(path)!r} is no tree of transformers' debugger, or is cut "
            "short; write it again.") from None
    tree = _Tree(path, name)
    tree.side(root.get("inputs"), "inputs")
    for child in root.get("children", ()):
        tree.node(child)
    files = sorted(path.parent.glob(f"{name}_outputs*.safetensors"))
    for file in files:
        rest = file.stem.removeprefix(f"{name}_outputs").strip("_")
        tree.put(f"outputs/{rest or 'output'}", tree.file(file))
    notes = [f"{each} was called {count} times, and its file has the last "
             "call alone: it is left out." for each, count
             in tree.lost.items()]
    if tree.shapes:
        notes.append(f"{str(path)!r} has tensors as PyTorch prints them: the "
                     "first and last 3 places along each axis of a large one, "
                     "to 4 digits.")
    made = trace_of(tree.arrays, "torch, printed" if tree.printed else
                    "torch, stored", str(path), notes,
                    "write it with use_repr=False")
    made.resolution = (0.0, DIGITS if tree.printed else 0.0)
    for step in made.steps:
        for side in ("inputs", "outputs"):
            arrays = getattr(step, side)
            for each, array in [*arrays.items()]:
                if found := tree.shapes.get(id(array)):
                    shape, total = found
                    made.printed[step.path, side, each] = lean(shape)
                    arrays |= printed_as(
                        each, array, total, int(np.prod(shape)))
    return made


class _Tree:
    """What is found in a tree: arrays by name, and the shapes of the cut."""

    def __init__(self, path, root):
        self.path, self.root = path, root
        self.arrays, self.shapes, self.printed = {}, {}, False
        self.files = {}
        self.calls: collections.Counter = collections.Counter()
        self.lost = {}

    def node(self, node):
        """Take in a module's inputs, then what is in it, then its outputs."""
        if not isinstance(node, dict) or not isinstance(
                node.get("module_path"), str):
            raise InputError(
                f"{str(self.path)!r} has a node without a module_path; write "
                "it again.")
        path = visible(node["module_path"]).removeprefix(f"{self.root}.")
        self.calls[path] += 1
        count = self.calls[path]
        name = path if count == 1 else f"{path}#{count}"
        self.side(node.get("inputs"), f"{name}/input")
        for child in node.get("children", ()):
            self.node(child)
        self.side(node.get("outputs"), f"{name}/output")

    def side(self, value, name):
        """Take in the tensors of a nest."""
        if isinstance(value, dict) and value.keys() >= KEYS:
            array = self.tensor(value, name)
            if array is not None:
                self.put(name, array)
            return
        parts = (value.items() if isinstance(value, dict) else
                 enumerate(value) if isinstance(value, list) else ())
        for key, part in parts:
            join = "/" if name == "inputs" else "."
            self.side(part, name if key in ("args", "kwargs")
                      else f"{name}{join}{key}")

    def put(self, name, array):
        """Keep an array; of two of one name the second gets a number."""
        while name in self.arrays:
            name += "'"
        self.arrays[name] = array

    def tensor(self, value, name):
        """The array of a tensor; None where its file has another call's."""
        if isinstance(value["value"], str):
            path = self.path.parent / pathlib.PurePosixPath(value["value"])
            if path in self.files:
                module = name.partition("/")[0].partition("#")[0]
                self.arrays.pop(self.files[path], None)
                self.lost[module] = self.calls[module]
                return None
            self.files[path] = name
            return self.file(path)
        self.printed = True
        shape = tuple(map(int, re.findall(r"\d+", str(value["shape"]))))
        text = "".join(map(str, value["value"])).partition("tensor(")[2]
        text = text[:text.rfind("]") + 1] if "]" in text else (
            text.partition(",")[0])
        found = [{"True": 1.0, "False": 0.0}.get(each) if each[0] in "TF"
                 else float(each) for each in NUMBER.findall(text)]
        whole = np.prod(shape, dtype=int) <= PRINTED
        expected = shape if whole else tuple(
            min(length, 6) for length in shape)
        if np.prod(expected, dtype=int) != len(found):
            raise InputError(
                f"{str(self.path)!r} has {len(found)} numbers of {name!r}, "
                f"whose shape is {list(shape)}; write it again with "
                "use_repr=False.")
        kind = str(value["dtype"]).rpartition(".")[2]
        array = np.array(found).reshape(expected).astype(
            {"bool": bool}.get(kind, kind if kind in (
                "float64", "float32") or "int" in kind else "float32"))
        if whole:
            return array
        array = corners(array)
        mean = NUMBER.findall(str(value.get("mean", "")))
        self.shapes[id(array)] = shape, (
            float(mean[0]) * int(np.prod(shape)) if mean else None)
        return array

    def file(self, path):
        """The array of a safetensors file beside the tree."""
        if path.resolve().parent != self.path.resolve().parent or (
                not path.is_file()):
            raise InputError(
                f"{str(self.path)!r} names {path.name!r}, which is not beside "
                "it; copy the whole folder.")
        _, arrays, _ = checkpoints.read_file(path)
        return next(iter(arrays.values()))
