"""Time and memory to load a large safetensors file, in four ways.

``python -m benchmarks.loading [GiB [WAY…]]`` makes a BART of that size in a
temporary folder, and starts a process for each way. "read" maps or loads every
array and looks at one number of each; "used" sums all numbers. The memory is
the most that the process held, without the pages of the file that it has
mapped.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from contract.checkpoints import safetensors_file
from contract.checkpoints.folder import read
from contract.dialects.bart import BART
from contract.schema import schema

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
    return BartForConditionalGeneration.from_pretrained(folder).state_dict()


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


def main(size, ways):
    """Make the file and print a row for each way."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        made(folder, size)
        (folder / "model.safetensors").read_bytes()  # into the page cache
        size = (folder / "model.safetensors").stat().st_size
        print(f"{size / 2**30:.2f} GiB in float32")
        print(f"{'':18} {'read s':>8} {'MiB':>6} {'used s':>8} {'MiB':>6}")
        for way in ways:
            row = best(way, folder, "")[:2] + best(way, folder, "used")[:2]
            print(f"{way:18} {row[0]:8.2f} {row[1]:6.0f} {row[2]:8.2f} "
                  f"{row[3]:6.0f}")


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in WAYS:
        measured(sys.argv[1], pathlib.Path(sys.argv[2]),
                 sys.argv[3:] == ["used"])
    else:
        size, *ways = sys.argv[1:] or ["1.2"]
        main(float(size) * 2**30, ways or WAYS)
