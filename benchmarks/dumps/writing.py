"""Activations of one small model, as several programs write them."""

import base64
import io
import json
import struct

import numpy as np

#: Tokens, width, heads and words of the small model.
T, D, H, V = 9, 16, 2, 20


def model(eps=1e-5, dtype=np.float32, change=lambda name, array: array):
    """{name: array} of a run of two layers, in the order of computation.

    Args:
        eps: of the last norm.
        dtype: of the numbers.
        change: what is made of each array before it is used.
    """
    draw = np.random.default_rng(0)
    ids = draw.integers(0, V, (1, T))
    kernels = {name: draw.normal(size=shape) / 3 for name, shape in (
        ("embed", (V, D)), ("h.0", (D, D)), ("h.1", (D, D)),
        ("head", (V, D)))}
    made = {"inputs/ids": ids}

    def put(name, array):
        made[name] = change(name, array).astype(dtype)
        return made[name].astype(np.float64)

    x = put("embed", kernels["embed"][ids])
    for layer in ("h.0", "h.1"):
        normed = put(f"{layer}.norm", x / np.sqrt(
            (x * x).mean(-1, keepdims=True)
            + (eps if layer == "h.1" else 1e-5)))
        mixed = put(f"{layer}.mlp", np.tanh(normed @ kernels[layer].T))
        x = put(layer, x + mixed)
    put("outputs/logits", x @ kernels["head"].T)
    return made | {f"parameters/{name}": kernel.astype(dtype)
                   for name, kernel in kernels.items()}


def steps(arrays):
    """The arrays that are neither inputs nor parameters, in order."""
    return {name: array for name, array in arrays.items()
            if not name.startswith(("inputs/", "parameters/"))}


#: What llama.cpp calls them.
LLAMA = {"embed": "embd", "h.0.norm": "ffn_norm-0", "h.0.mlp": "ffn_out-0",
         "h.0": "l_out-0", "h.1.norm": "ffn_norm-1", "h.1.mlp": "ffn_out-1",
         "h.1": "l_out-1", "outputs/logits": "result_output"}


def ends(length):
    """The places that are printed along an axis; None stands for the rest."""
    return [*range(length)] if length <= 6 else [
        0, 1, 2, None, *range(length - 3, length)]


def as_llama(arrays, rows=lambda name, array: array):
    """The text of llama-eval-callback."""
    lines = [f"number of input tokens = {arrays['inputs/ids'].size}"]
    lines += [f"0.00.100 I   {each}" for each in arrays["inputs/ids"][0]]
    for name, array in steps(arrays).items():
        array = rows(name, array)
        shape = [*[1] * (4 - array.ndim), *array.shape]
        blocks = array.reshape(shape)
        lines.append(
            "common_debug_cb_eval: "
            f"{LLAMA.get(name, name):>24} = (f32) {'MUL':>10}"
            f"(x{{1, 1, 1, 1}}, }}) = {{{', '.join(map(str, shape[::-1]))}}}")
        for block in blocks:
            lines.append("    [")
            for i in ends(shape[1]):
                lines += ["        ..., "] if i is None else ["        ["]
                for j in ends(shape[2]) if i is not None else ():
                    lines.append("            ..., " if j is None else (
                        "            [" + ", ".join(
                            "   ..." if k is None
                            else f"{block[i, j, k]:12.4f}"
                            for k in ends(shape[3])) + "  ],"))
                lines += ["        ],"] if i is not None else []
            lines += ["    ]", f"    sum = {blocks.sum():f}"]
    return "\n".join(lines) + "\n"


def as_polygraphy(arrays):
    """The JSON of polygraphy run --save-outputs."""
    def entry(array):
        file = io.BytesIO()
        np.save(file, array)
        return {"values": {"array": base64.b64encode(
            file.getvalue()).decode(), "polygraphy_class": "ndarray"},
            "polygraphy_class": "LazyArray"}
    outputs = {f"/{name.rpartition('/')[2].replace('.', '/')}": entry(array)
               for name, array in steps(arrays).items()}
    return json.dumps({"lst": [["trt-runner", [{
        "outputs": outputs, "runtime": 0.1, "runner_name": "trt-runner",
        "polygraphy_class": "IterationResult"}]]],
        "polygraphy_class": "RunResults"}, indent=4)


def write_vllm(folder, arrays):
    """A folder of vLLM's intermediate tensors."""
    import torch
    step = folder / "step_0"
    calls = [name for name in steps(arrays) if "/" not in name]
    for name in calls:
        (step / name).mkdir(parents=True)
        torch.save(torch.tensor(arrays[name][0]),
                   step / name / "outputs_cuda_0.pt")
    (step / "module_calls.txt").write_text(
        "embed\nh.0\nh.0.norm\nh.0.mlp\nh.1\nh.1.norm\nh.1.mlp\n")


def as_gguf(arrays, facts=None, kinds=None):
    """A GGUF file of version 3; kinds says which are float16 (1), Q8_0 (8)
    or of a type that is not read (12)."""
    def text(word):
        return struct.pack("<Q", len(word)) + word.encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(arrays), len(facts or {}))
    for name, value in (facts or {}).items():
        head += text(name)
        head += (struct.pack("<I", 8) + text(value) if isinstance(value, str)
                 else struct.pack("<II", 4, value))
    body = b""
    for name, array in arrays.items():
        kind = (kinds or {}).get(name, 0)
        head += text(name) + struct.pack("<I", array.ndim) + struct.pack(
            f"<{array.ndim}Q", *array.shape[::-1])
        head += struct.pack("<IQ", kind, len(body))
        if kind == 8:
            blocks = array.reshape(-1, 32)
            scales = np.abs(blocks).max(1, keepdims=True) / 127
            data = b"".join(
                np.float16(scale).tobytes() + row.astype(np.int8).tobytes()
                for scale, row in zip(scales[:, 0], np.rint(blocks / scales)))
        else:
            data = array.astype({0: "<f4", 1: "<f2"}.get(kind, "<f4")
                                ).tobytes()
        body += data + b"\0" * (-len(data) % 32)
    return head + b"\0" * (-len(head) % 32) + body
