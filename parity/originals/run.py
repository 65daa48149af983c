"""Every dialect whose original can run here, proved on drawn models."""

import importlib
import importlib.util

from contract.dialects.table import SYSTEMS
from parity import ports
from parity.originals.proof import prove
from parity.ports import NotChecked

#: Dialect -> what has to be installed, and the file and class of its model.
ORIGINALS = {
    "hf_marian": ("transformers", "hugging_face", "HuggingFace"),
    "bart": ("transformers", "hugging_face", "HuggingFace"),
    "bert": ("transformers", "hugging_face", "HuggingFace"),
    "gpt2": ("transformers", "hugging_face", "HuggingFace"),
    "t5": ("transformers", "hugging_face", "HuggingFace"),
    "llama": ("transformers", "hugging_face", "HuggingFace"),
    "torch_nn": ("torch", "torch_nn", "TorchNN"),
    "keras_hub": ("keras_hub", "keras_hub", "KerasHub"),
}


def original(name):
    """The class of a dialect's original, or in a sentence why there is none.
    """
    if name not in ORIGINALS:
        return f"{name} has no library that can run here; it is read alone"
    need, file, kind = ORIGINALS[name]
    if importlib.util.find_spec(need) is None:
        return (f"{name} needs {need}: install the extra peers, or "
                "peers-keras")
    return getattr(importlib.import_module(f"parity.originals.{file}"), kind)


def proved(names, seeds, port_names, on_work=lambda text: None):
    """Rows of a proof of dialects, and in sentences what was not checked."""
    findings, left_out, engines = [], [], {}
    for port in port_names:
        engine = ports.engine(port)
        if isinstance(engine, NotChecked):
            left_out.append(f"{port}: {engine.reason}")
        else:
            engine.set_precision()
            engines[port] = engine
    for name in names:
        kind = original(name)
        if isinstance(kind, str):
            left_out.append(kind)
            continue
        for seed in seeds:
            on_work(f"{name}, model {seed}")
            findings += prove(SYSTEMS[name], kind, seed, engines)
    return findings, left_out
