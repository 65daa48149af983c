"""Dumps of an engine beside transformers' own model: the place is asked for."""

import functools

import numpy as np

from benchmarks.dumps import writing
from benchmarks.dumps.engine import LlamaEngine, truth
from benchmarks.dumps.pair import fault, same
from parity.dumps.read import load

#: What the engine's parts are called by transformers.
LAYER = r"model\.layers\.1"
AFTER_ATTENTION = rf"{LAYER}\.self_attn(\.o_proj)?( \(last row\))?"
AFTER_GATE = rf"{LAYER}\.mlp(\.down_proj)?( \(last row\))?"


def named(folder, arrays):
    """As .npy files with their order."""
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)
    (folder / "names.txt").write_text("\n".join(
        ["parity dump 1", *arrays]) + "\n")
    return folder


def zipped(folder, arrays):
    """As one .npz."""
    np.savez(folder / "all.npz", **arrays)
    return folder / "all.npz"


def unordered(folder, arrays):
    """As .npy files, of which nobody says the order."""
    named(folder, arrays)
    (folder / "names.txt").unlink()
    return folder


def printed(folder, arrays):
    """As llama.cpp prints it."""
    (folder / "log.txt").write_text(writing.as_llama({
        "inputs/ids": arrays["inputs/input_ids"],
        **{name: array for name, array in arrays.items()
           if name != "inputs/input_ids"}}))
    return folder / "log.txt"


def stored(folder, arrays):
    """As Polygraphy stores it, with the inputs beside."""
    (folder / "outputs.json").write_text(writing.as_polygraphy(arrays))
    return folder / "outputs.json"


def modules(folder, arrays):
    """As vLLM stores it: one folder a module, and no batch."""
    import torch
    for name, array in writing.steps(arrays).items():
        if "/" not in name:
            (folder / "step_0" / name).mkdir(parents=True)
            torch.save(torch.tensor(array),
                       folder / "step_0" / name / "outputs_cuda_0.pt")
    (folder / "step_0" / "module_calls.txt").write_text("".join(
        f"{name}\n" for name in writing.steps(arrays) if "/" not in name))
    return folder


def pair(write, engine, last=False, change=None):
    """A maker of both sides."""
    def make(folder):
        arrays = engine(last=last)
        if change:
            arrays = change(arrays)
        return truth()[0], load(write(folder, arrays))
    return make


#: What is wrong, and where it shows first.
FAULTS = {
    "eps": (LlamaEngine(eps=0.1), rf"{LAYER}\.input_layernorm"),
    "theta": (LlamaEngine(theta=500.0), AFTER_ATTENTION),
    "neighbours": (LlamaEngine(neighbours=True), AFTER_ATTENTION),
    "scale": (LlamaEngine(scaled=False), AFTER_ATTENTION),
    "future": (LlamaEngine(causal=False), AFTER_ATTENTION),
    "key_heads": (LlamaEngine(tiled=True), AFTER_ATTENTION),
    "residual": (LlamaEngine(residual=False), rf"{LAYER}( \(last row\))?"),
    "activation": (LlamaEngine(activation="quick"), AFTER_GATE),
    "gate_and_up": (LlamaEngine(swapped=True), AFTER_GATE),
    "final_norm": (LlamaEngine(normed=False), r"lm_head.*|\(model\)"),
    "embedding_scale": (LlamaEngine(embed_scale=1.1), r"model\.embed_tokens"),
    "layer_weights": (LlamaEngine(layer=0), rf"{LAYER}\.input_layernorm"),
}

#: The ways in which each is dumped.
WAYS = {"eps": (named, printed), "theta": (zipped, printed),
        "neighbours": (named, stored), "scale": (modules, printed),
        "future": (unordered, stored), "key_heads": (named, printed),
        "residual": (modules, stored), "activation": (zipped, printed),
        "gate_and_up": (named, modules), "final_norm": (named, printed),
        "embedding_scale": (stored, printed), "layer_weights": (
            unordered, printed)}

for _name, (_engine, _says) in FAULTS.items():
    for _write in WAYS[_name]:
        fault(_says, place=True, name=f"{_name}, {_write.__name__}")(pair(
            _write, _engine, last=_write is printed))


# Sound pairs

RIGHT = LlamaEngine()

for _write in (named, zipped, unordered, printed, stored, modules):
    same(pair(_write, RIGHT), f"right, {_write.__name__}")
same(pair(printed, RIGHT, last=True), "right, last token alone")


def sound(function):
    """A pair whose arrays are changed by a function of them."""
    same(pair(named, RIGHT, change=function), function.__name__)
    return function


@sound
def big_endian(arrays):
    """Numbers of the other byte order."""
    return {name: array.astype(array.dtype.newbyteorder(">"))
            for name, array in arrays.items()}


@sound
def batched(arrays):
    """With the batch as the first axis."""
    return {name: array[None] if array.ndim == 2 and "inputs" not in name
            else array for name, array in arrays.items()}


@sound
def columns(arrays):
    """Tokens last, as a runtime for column-major arrays has them."""
    return {name: array.T if name[0] in "afl" else array
            for name, array in arrays.items()}


@sound
def fewer(arrays):
    """With every second step alone."""
    return {name: array for i, (name, array) in enumerate(arrays.items())
            if i % 2 or "/" in name}


@sound
def more(arrays):
    """With arrays that nobody else has."""
    return {"inputs/input_ids": arrays["inputs/input_ids"],
            "cos": np.cos(np.arange(36.0, dtype=np.float32)).reshape(9, 4),
            **arrays, "cache_k": np.ones((9, 16), np.float32)}


@sound
def numbered(arrays):
    """With names that say nothing."""
    return {name if "/" in name else f"t{i:03}": array
            for i, (name, array) in enumerate(arrays.items())}


@sound
def narrow_ids(arrays):
    """With ids of 32 bits."""
    return arrays | {"inputs/input_ids": arrays["inputs/input_ids"].astype(
        np.int32)}


@sound
def heads_apart(arrays):
    """Queries, keys and values with a head as an axis."""
    return {name: array.reshape(9, -1, 8) if name[1:5] == "cur-" else array
            for name, array in arrays.items()}


@functools.partial(fault, r"\(model\)|lm_head.*", True, "one output wrong")()
def _one_number(folder):
    arrays = RIGHT()
    arrays["outputs/logits"] = arrays["outputs/logits"] * np.float32(1.001)
    return truth()[0], load(named(folder, arrays))
