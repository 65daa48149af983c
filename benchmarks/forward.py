"""Time the forward pass: ``python -m benchmarks.forward``."""

import typer

from benchmarks import harness, workload
from benchmarks.forward_implementations import IMPLEMENTATIONS

FLOPS = workload.matmul_flops(workload.config())


def rows(results, clock):
    """The table's rows as plain data."""
    return harness.peered(BENCHMARK, results, FLOPS, clock)


def cells(row):
    """A row of the table as text."""
    return (
        row["title"], f"{row['turns']}", f"{row['median'] * 1e3:.0f}",
        f"{row['fastest'] * 1e3:.0f}",
        f"{row['ratio']:.2f}" if row["ratio"] else "",
        f"{row['rate'] / 1e9:.0f}", f"{row['own'] / 1e9:.0f}",
        f"{row['share_of_own']:.0%}", f"{row['share_of_best']:.0%}",
        harness.megabytes(row["peak"]), f"{row['error']:.0e}",
    )


BENCHMARK = harness.Benchmark(
    name="forward", implementations=IMPLEMENTATIONS, always=("peer", "numpy"),
    truth="numpy", limit=1e-5,
    columns=("implementation", "turns", "ms", "best ms", "ratio", "GFLOP/s",
             "own matmul", "of own", "of best", "MB", "error"),
    rows=rows, cells=cells, workload=workload.described(FLOPS))

main = harness.command(BENCHMARK)
main.__doc__ = """Time the forward pass of every implementation, validated."""

if __name__ == "__main__":
    typer.run(main)
