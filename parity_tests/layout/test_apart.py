"""A port is a port: alone in a process, it needs no other part of this project.

The import statements of its files are read elsewhere; here a port is imported
and worked with, and ``sys.modules`` tells what came along by any door.
"""


import pytest

from parity import ports
from parity_tests.support.processes import printed

#: Work for a port alone: each function of both forms of its engine.
ALONE = """
import importlib, sys
import numpy as np
from transformer_contract import weights
from transformer_contract.batch import Batch
from transformer_contract.config import PLAIN
from transformer_contract.generation import GenerationConfig
from transformer_contract.training import TrainingConfig

{before}
config = PLAIN.replace(
    source_vocab=11, target_vocab=13, d_model=6, n_heads=3, d_ff=5,
    n_encoder_layers=1, n_decoder_layers=1, max_length=9)
source, target = np.array([[3, 4, 0]]), np.array([[1, 5, 2, 7]])
batch = Batch.of_ids(source, target)
for form in "", "fast.":
    engine = importlib.import_module("{package}." + form + "engine")
    engine.set_precision(), engine.devices(), engine.versions()
    model = engine.build(
        "transformer", config, engine.initial_weights(config, 1))
    engine.forward(model, *batch, key=np.array([1, 2], np.uint32))
    engine.predict(model, *batch)
    engine.gradients(model, *batch, target)
    engine.masks(source, target, 0)
    engine.loss(np.zeros((1, 4, 13)), target, 0, 0.1, "kl")
    engine.run_residual(
        model.encoder.layers[0].feed_forward_residual,
        *np.ones((2, 1, 2, 6)))
    engine.generate(model, source, GenerationConfig(
        bos_id=1, eos_id=2, max_tokens=2, method="sample"))
    trainer = engine.trainer(model, TrainingConfig(clip_norm=1.0))
    engine.train_step(trainer, source[None], target[None])
    engine.resume(trainer, 2, engine.moments(trainer))
    engine.export(model), engine.matmul(np.ones((2, 2)), np.ones((2, 2)))
{after}
"""

#: What a process may have of this project beside the contract, what that
#: stands on, and the port.
LOADED = """
ours = sorted(name for name in sys.modules if name.split(".")[0].startswith(
    ("impl_", "reference_numpy", "parity", "benchmarks")) and (
    name.split(".")[0] != "parity_io"))
print("\\n".join(name for name in ours if name.split(".")[0] != "{package}"))
"""

#: Every attribute of the project's modules and classes, and what holds values.
HARNESS = """
import pkgutil
import parity, reference_numpy
import transformer_contract

def walk(package):
    name = package.__name__ + "."
    for found in pkgutil.walk_packages(package.__path__, name):
        if found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as missing:
            if missing.name.split(".")[0] != "mlx":  # it has few wheels
                raise

for package in transformer_contract, reference_numpy, parity:
    walk(package)

def state():
    found = {{}}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] not in (
                "parity_io", "transformer_contract", "reference_numpy",
                "parity"):
            continue
        for attribute, value in list(vars(module).items()):
            look(found, name + "." + attribute, value, name)
    return found

def look(found, where, value, module):
    found[where] = id(value)
    if isinstance(value, dict) and not where.endswith("__builtins__"):
        found[where] = [(key, id(one)) for key, one in value.items()]
    elif isinstance(value, (list, set)):
        found[where] = list(map(id, value))
    elif isinstance(value, type) and value.__module__ == module:
        for name, one in vars(value).items():
            found[where + "." + name] = id(one)
    elif hasattr(value, "__code__"):
        found[where] = id(value), id(value.__code__), id(value.__defaults__)

first = state()
"""

COMPARED = """
last = state()
print("\\n".join(name for name in first if first[name] != last.get(name)))
print("\\n".join(name for name in last if name not in first))
"""


FRAMEWORKS = {"torch", "jax", "keras", "tensorflow", "flax"}


def after_work(port, before, after):
    """The lines that a process prints after a port has worked in it."""
    package = ports.package(port)
    code = ALONE.format(package=package, before=before.format(),
                        after=after.format(package=package))
    return printed("-c", code).split()


@pytest.mark.long
def test_a_port_imports_no_other_part(port):
    assert after_work(port.NAME, "", LOADED) == []


@pytest.mark.long
def test_a_port_alters_no_other_part(port):
    assert after_work(port.NAME, HARNESS, COMPARED) == []


@pytest.mark.parametrize("code", [
    "import transformer_contract.weights, parity.cli, reference_numpy.engine",
    "import parity; parity.trace, parity.compare, parity.explain",
    "import parity.commands.compare, parity.comparison.compare, "
    "parity.matching.steps, parity.tracing.folder, parity.tracing.trace",
    "from parity.cli import app; assert not app(["
    "'check', 'differences', '--between', 'torch,jax'], "
    "standalone_mode=False)"],
    ids=["contract and cli", "package", "compare", "recorded differences"])
def test_no_framework_is_imported(code):
    code = (f"import sys; {code}; "
            f"print({FRAMEWORKS} & {{*map(str, sys.modules)}})")
    assert printed("-c", code).endswith("set()\n")
