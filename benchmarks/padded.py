"""Time a training step on a batch of which half is padding.

``python -m benchmarks.padded``.
"""

import dataclasses
import functools

import typer

from benchmarks import harness, training, workload
from benchmarks.workload import SHARES

#: Of all tokens those that are not padding.
SHARE = sum(SHARES) / 16 / len(SHARES)

#: The operations that are needed, but for attention's: those of the tokens.
FLOPS = SHARE * training.FLOPS

BENCHMARK = dataclasses.replace(
    training.BENCHMARK, name="padded",
    rows=functools.partial(training.rows, share=SHARE),
    workload=workload.described(FLOPS, SHARE))

main = harness.command(BENCHMARK)
main.__doc__ = """Time a step with much padding, validated first."""

if __name__ == "__main__":
    typer.run(main)
