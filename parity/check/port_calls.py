"""What ports are asked, where they work: functions of a Workbench.

What one returns is sent back, so that it holds arrays and no tensors.
"""

import json

from parity_io.errors import InputError
from parity import ports, out_of_memory
from parity.check import manners
from parity.check.runners import arrays_by_name, compare_steps
from parity.check.shared_arrays import load
from parity.check.canary import canary


def settings(bench):
    """Full precision set: (what was set, by name; the devices).

    A NotChecked where the framework computes on no device.

    Raises:
        TypeError: the port answered something else.
    """
    precision = plain(bench.engine.set_precision(), "set_precision")
    there = bench.engine.devices()
    if there == []:
        return ports.NotChecked(
            bench.engine.NAME, "its framework computes on no device here")
    manners.begun(bench.engine)
    if not isinstance(there, list) or "cpu" not in there or not all(
            isinstance(name, str) for name in there):
        raise TypeError(f"devices returned {there!r}, not a list of names "
                        "with cpu")
    return precision, there


def plain(value, function):
    """What a function of an engine returned, if JSON can hold it by name."""
    if not isinstance(value, dict) or not all(
            isinstance(name, str) for name in value):
        raise TypeError(f"{function} returned {value!r}, not values by name")
    json.dumps(value)
    return value


def product(bench, device):
    """The error of a float32 product on a device, in eps."""
    return canary(bench.engine, device)


def facts(bench, devices):
    """(versions, {device: error of a float32 product in eps})."""
    return plain(bench.engine.versions(), "versions"), {
        device: product(bench, device) for device in devices}


def differences(bench, model, case, inputs, truth, keep=True):
    """Compare every step of a case with its Oracle: {name: Difference}.

    The model is kept, or dropped at once.
    """
    try:
        runner = bench.runner(model)
        return compare_steps(
            runner.steps(case, inputs), load(truth), model.dtype,
            *([runner.fused] if model.form == "fast" else []))
    finally:
        if not keep:
            bench.clear()
            out_of_memory.release()


def not_fused(bench, config):
    """What the fast form leaves to the readable one, in words each."""
    engine = ports.engine(bench.engine.NAME, "fast")
    return tuple(engine.not_fused(config))


def refusal(bench, model):
    """Why a port's form cannot be a ModelSpec's model; "" if it can."""
    try:
        built = bench.runner(model).model
    except InputError as error:
        return str(error)
    return "" if built is not None else "it built nothing"


def forward(bench, model, batch):
    """Every step of a whole model on a batch."""
    return arrays_by_name(
        bench.engine.forward(bench.runner(model).model, *batch))
