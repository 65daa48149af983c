"""How much a run differs from itself, and what it costs on many rows.

The same model is asked the same ten times, by one thread and by two, and about
one row alone and among others. None of that is promised to be equal to the bit
by any framework, and a difference is no divergence: it is a number to know
before bits are compared.
"""

import time

import numpy as np
from threadpoolctl import threadpool_limits

from parity import out_of_memory
from parity.numerics.distance import finite_distance
from parity.subjects import RUNTIMES

#: How often the same is asked, and how many batches cost is measured with.
TIMES, BATCHES = 10, 60

#: Those whose threads a process can set later; others read them at the start.
POOLS = ("numpy", "torch", "keras on torch")


def measured(predictor_of, inputs, subject):
    """{"again", "threads", "alone", "large", "memory"} of a SubjectCell.

    Args:
        predictor_of: inputs -> () -> an output [B T V].
        inputs: of a batch.
        subject: a Subject.
    """
    predict = predictor_of(inputs)
    first = np.copy(predict())
    threads = alone = None
    if subject.mode not in RUNTIMES:  # exporters trace no batch of one row
        alone = finite_distance(predictor_of(
            [array[:1] for array in inputs])(), first[:1])
    if subject.implementation in POOLS and subject.mode not in RUNTIMES:
        with threadpool_limits(2):
            threads = finite_distance(predict(), first)
    again = max(finite_distance(predict(), first)
                for _ in range(TIMES - 1))
    large, memory = cost(predictor_of([
        np.concatenate([array] * BATCHES) for array in inputs]))
    return {"again": again, "threads": threads, "alone": alone,
            "large": large, "memory": memory}


def cost(predict):
    """CPU seconds of a pass, and the most bytes that it had beside the model's.

    None for bytes where the system does not tell.
    """
    predict()  # it may compile
    start = time.process_time()
    predict()
    seconds = time.process_time() - start
    out_of_memory.release()
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak is from now on
        before = kilobytes("VmRSS")
        predict()
        return seconds, 1024 * max(0, kilobytes("VmHWM") - before)
    except OSError:
        return seconds, None


def kilobytes(name):
    """A number of this process that Linux knows, in KiB."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file
                    if line.startswith(f"{name}:"))
