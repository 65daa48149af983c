"""Time and memory to load a large safetensors file, in four ways.

Each way has a process of its own, ``python -m benchmarks.loading WAY FOLDER``,
which maps or loads every array of a BART and looks at one number of each; with
``used`` it sums all numbers. The memory is the most that the process held,
without the pages of the file that it has mapped.
"""

import json
import pathlib
import re
import subprocess
import sys
import threading
import time

import numpy as np

from parity_io.checkpoints import safetensors_file
from parity_io.checkpoints.folder import read
from transformer_contract.dialects.bart import BART
from transformer_contract.schema import schema

WAYS = ("ours", "safetensors.numpy", "safetensors.torch", "transformers")


def made(folder, size):
    """A BART of about so many bytes in float32, its arrays not distinct."""
    described = {**BART.defaults, **BART.only, "architectures": [
        "BartForConditionalGeneration"], "encoder_layers": 4,
        "decoder_layers": 4}
    config = BART.config(described)
    while sum(map(np.prod, schema(config).values())) * 4 < size:
        for key in ("encoder_layers", "decoder_layers"):
            described[key] += 1
        config = BART.config(described)
    block = np.random.default_rng(0).normal(size=2**26).astype(np.float32)
    weights = {name: block[:np.prod(shape)].reshape(shape) / 100
               for name, shape in schema(config).items()}
    (folder / "config.json").write_text(json.dumps(described))
    safetensors_file.write(folder / "model.safetensors",
                           BART.write(weights, config), {"format": "pt"})


def load(way, folder):
    """Every array of the folder by name, loaded in one way."""
    file = folder / "model.safetensors"
    if way == "ours":
        checkpoint = read(folder)
        return BART.read(checkpoint.arrays, BART.config(checkpoint.config))
    if way == "safetensors.numpy":
        from safetensors.numpy import load_file
        return load_file(file)
    if way == "safetensors.torch":
        from safetensors.torch import load_file
        return load_file(file)
    from transformers import BartForConditionalGeneration
    model = BartForConditionalGeneration.from_pretrained(folder)
    return {**dict(model.named_parameters()),  # what is tied is there once
            **dict(model.named_buffers())}


def measured(way, folder, used):
    """Seconds and peak MiB of one way, as one line of JSON."""
    if way == "transformers":
        import transformers  # noqa: F401, not counted
    if way == "safetensors.torch":
        import torch  # noqa: F401, not counted
    before, peak = own_memory(), [0.0]
    threading.Thread(target=watch, args=[peak], daemon=True).start()
    start = time.perf_counter()
    arrays = load(way, folder)
    total = sum(float(array.sum() if used else array[(0,) * array.ndim])
                for array in arrays.values())
    seconds = time.perf_counter() - start
    peak.append(own_memory())
    print(json.dumps([seconds, max(peak) - before, total]))


def watch(peak):
    """Keep the most of own_memory in ``peak``, looked at each 5 ms."""
    while True:
        peak[0] = max(peak[0], own_memory())
        time.sleep(0.005)


def own_memory():
    """MiB that the process holds itself, the mapped file's pages left out."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) / 1024


def best(way, folder, used):
    """The least seconds and MiB of three processes, and the sum they found.

    NaN if it cannot run.
    """
    found = []
    for _ in range(3):
        ran = subprocess.run(
            [sys.executable, "-m", "benchmarks.loading", way, str(folder),
             used], capture_output=True, text=True)
        if ran.returncode:
            return [float("nan")] * 3
        found.append(json.loads(ran.stdout.splitlines()[-1]))
    return [min(column) for column in zip(*found)]


if __name__ == "__main__":
    measured(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:] == ["used"])
