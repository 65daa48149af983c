"""Every dialect whose original can run here, proved on drawn models."""

import importlib
import importlib.util
import os

from transformer_contract.dialects.table import SYSTEMS
from parity import compiled, ports
from parity_tests.originals import marian, marian_proof, searching
from parity_tests.originals.compiled import CompiledEngine
from parity_tests.originals.proof import prove
from parity.ports import NotChecked

#: Dialect -> the modules that are needed, and the file and class of its model.
ORIGINALS = {
    "hf_marian": ("transformers", "hugging_face", "HuggingFace"),
    "bart": ("transformers", "hugging_face", "HuggingFace"),
    "bert": ("transformers", "hugging_face", "HuggingFace"),
    "gpt2": ("transformers", "hugging_face", "HuggingFace"),
    "t5": ("transformers", "hugging_face", "HuggingFace"),
    "llama": ("transformers", "hugging_face", "HuggingFace"),
    "torch_nn": ("torch", "torch_nn", "TorchNN"),
    "keras_hub": ("keras_hub", "keras_hub", "KerasHub"),
    "whisper": ("transformers", "whisper", "Whisper"),
    "tutorial": ("annalog", "tutorial", "Tutorial"),
    "fairseq": ("fairseq torch", "fairseq", "Fairseq"),
    "flax_wmt": ("wmt flax", "flax_wmt", "FlaxWMT"),
    "t2t": ("tensor2tensor tensorflow", "t2t", "T2T"),
}

#: How the others are had than by the extra peers.
APART = {"keras_hub": "install the extra peers-keras",
         "annalog": "pip install --no-deps annalog",
         "flax": "install the extra jax",
         "tensorflow": "install the extra keras",
         "fairseq": "set PYTHONPATH to a clone of facebookresearch/fairseq",
         "tensor2tensor": "set PYTHONPATH to a clone of tensorflow/"
                          "tensor2tensor",
         "wmt": "set PYTHONPATH to the folder examples of a clone of "
                "google/flax"}

#: The same, of dialects whose searches are compared.
SEARCHED = {
    name: ORIGINALS[name]
    for name in ("hf_marian", "bart", "gpt2", "t5", "llama", "whisper",
                 "fairseq", "flax_wmt", "t2t")}

#: The ports that are proved under their compiler, and from which model on.
COMPILED, EAGER = ("jax",), 1

#: Dialects whose originals are programs: what is missing of them, in a
#: sentence, and a module that proves and searches.
PROGRAMS = {"marian": (marian.missing, marian_proof)}

#: How many models are searched.
MODELS = 5


def original(name, originals=ORIGINALS):
    """The class of a dialect's original, or in a sentence why there is none.

    Of one that is a program it is the module that proves it.
    """
    if name in PROGRAMS:
        missing, proof = PROGRAMS[name]
        return missing() or proof
    if name not in originals:
        return f"{name} has no library that can run here; it is read alone"
    needs, file, kind = originals[name]
    for need in needs.split():
        if importlib.util.find_spec(need) is None:
            return (f"{name} needs {need}: "
                    + APART.get(need, "install the extra peers"))
    return getattr(
        importlib.import_module(f"parity_tests.originals.{file}"), kind)


def proved(names, seeds, port_names, on_work=lambda text: None):
    """Rows of a proof of dialects, and in sentences what was not checked."""
    findings, (engines, left_out) = [], _engines(port_names)
    for name in names:
        kind = original(name)
        if isinstance(kind, str):
            left_out.append(kind)
            continue
        for seed in seeds:
            on_work(f"{name}, model {seed}")
            asked = {
                port: CompiledEngine(engine)
                if port in COMPILED and seed >= EAGER else engine
                for port, engine in engines.items()}
            findings += (kind.prove(seed, asked) if name in PROGRAMS else
                         prove(SYSTEMS[name], kind, seed, asked))
    return findings, left_out


def searched(names, models, port_names, on_work=lambda text: None):
    """A SearchRow for each search of dialects that the original answers too.

    Args:
        models: how many models of each are drawn, at most MODELS.
    """
    rows, (engines, _) = [], _engines(port_names)
    for name in names:
        kind = original(name, SEARCHED)
        for seed in range(0 if isinstance(kind, str) else min(models, MODELS)):
            on_work(f"{name}, searches of model {seed}")
            rows += (kind.search(seed, engines) if name in PROGRAMS else
                     searching.search(SYSTEMS[name], kind, seed, engines))
    return rows


def _engines(port_names):
    """The engines of ports, and in sentences which cannot run."""
    left_out, engines = [], {}
    os.environ |= compiled.quickly()
    for port in port_names:
        engine = ports.engine(port)
        if isinstance(engine, NotChecked):
            left_out.append(f"{port}: {engine.reason}")
        else:
            engine.set_precision()
            engines[port] = engine
    return engines, left_out
