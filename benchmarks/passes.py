"""The passes through a model that are timed, by name."""

from benchmarks import (
    forward_implementations, training_implementations, workload)
from benchmarks.harness import Benchmark
from benchmarks.workload import SHARES

#: Of all tokens those that are not padding, where half of a batch is.
SHARE = sum(SHARES) / 16 / len(SHARES)

#: Operations of the products; backward makes two for each of forward's. Of a
#: padded batch those of the tokens, but for attention's.
FORWARD = workload.matmul_flops(workload.config())
TRAINING = 3 * FORWARD

PASSES = {
    "forward": Benchmark(
        "forward", forward_implementations.IMPLEMENTATIONS,
        workload.described(FORWARD)),
    "training": Benchmark(
        "training", training_implementations.IMPLEMENTATIONS,
        workload.described(TRAINING)),
    "padded": Benchmark(
        "padded", training_implementations.IMPLEMENTATIONS,
        workload.described(SHARE * TRAINING, SHARE)),
}
