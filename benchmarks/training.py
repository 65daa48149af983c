"""Time a training step: ``python -m benchmarks.training``."""

import typer

from benchmarks import harness, workload
from benchmarks.training_implementations import IMPLEMENTATIONS

#: Backward makes two products for each of forward's.
FLOPS = 3 * workload.matmul_flops(workload.config())

#: Source and target tokens of a step.
TOKENS = 2 * workload.ROWS * workload.LENGTH


def rows(results, clock, share=1):
    """The table's rows as plain data; ``share`` of the tokens count."""
    for row in harness.peered(BENCHMARK, results, share * FLOPS, clock):
        yield row | {"tokens": share * TOKENS / row["median"]}


def cells(row):
    """A row of the table as text."""
    return (
        row["title"], f"{row['turns']}", f"{row['median'] * 1e3:.0f}",
        f"{row['fastest'] * 1e3:.0f}", f"{row['tokens']:.0f}",
        f"{row['ratio']:.2f}" if row["ratio"] else "",
        f"{row['rate'] / 1e9:.0f}", f"{row['own'] / 1e9:.0f}",
        f"{row['share_of_own']:.0%}", f"{row['share_of_best']:.0%}",
        harness.megabytes(row["peak"]),
        f"{row['memory']:.2f}" if row["memory"] else "",
        f"{row['error']:.0e}",
    )


BENCHMARK = harness.Benchmark(
    name="training", implementations=IMPLEMENTATIONS,
    always=("numpy", "torch_peer"), truth="numpy", limit=1e-5,
    columns=("implementation", "turns", "ms", "best ms", "tokens/s", "ratio",
             "GFLOP/s", "own matmul", "of own", "of best", "MB", "MB ratio",
             "error"),
    rows=rows, cells=cells, workload=workload.described(FLOPS))

main = harness.command(BENCHMARK)
main.__doc__ = """Time a step of every implementation, validated first."""

if __name__ == "__main__":
    typer.run(main)
