"""Time attention of many tokens, and take the memory that it needs."""

import contextlib
import pathlib
import platform
import statistics
import tempfile

import numpy as np

from benchmarks import harness
from benchmarks.attention_implementations import (
    CASES, EVERY, FEATURES, IMPLEMENTATIONS, judged, operands)
from benchmarks.worker import Worker
from transformer_contract.config import PLAIN

#: The relative L2 distance from equation 1 in float64 that is too far.
LIMIT = 1e-5

WORDS = (f"Attention of one row, heads of {FEATURES} features, float32; the "
         "error is that of 32 queries' contexts. The memory is what a run "
         "takes beside its inputs, the context included; of a library that "
         "keeps what it freed it is not known.")


def context_size(case):
    """The bytes of what attention gives: [B H T K] in float32."""
    size = EVERY[case]
    return 4 * size.rows * size.heads * size.tokens * FEATURES


def needs(case):
    """What a case needs: (operations of its products, bytes read).

    Under the causal mask half of the scores are.
    """
    heads, tokens, causal, rows = EVERY[case]
    flops = 4 * rows * heads * tokens**2 * FEATURES
    return flops / (2 if causal else 1), 3 * context_size(case)


def truth_of(case):
    """Equation 1 in float64 for the queries that are judged: [B H N K]."""
    from reference_numpy.attention import MultiHeadAttention
    query, key, value = (x.astype(np.float64) for x in operands(case))
    rows = judged(EVERY[case].tokens)
    mask = np.ones((1, 1, 1, 1), bool)
    if EVERY[case].causal:
        mask = (np.arange(EVERY[case].tokens) <= rows[:, None])[None, None]
    return MultiHeadAttention(PLAIN).attend(  # whose heads have 64 features
        query[:, :, rows], key, value, mask, 0, {})


def measured(names, settled, rounds, loud, notes, profile=False):
    """Validate and time every case, in turn: the report, as plain data.

    Args:
        names: of IMPLEMENTATIONS; of these, whose libraries are there.
        settled: what ``harness.settle`` returned.
        rounds: turns of each.
        loud: whether what libraries print is shown.
        notes: a Console for progress.
        profile: whether it is also told where the time goes.
    """
    threads, cores, clock = settled
    names = harness.installed(
        {name: IMPLEMENTATIONS[name].libraries for name in names}, notes)
    rows, results = {case: {} for case in CASES}, {}
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory()))
        workers = []
        for name in names:
            workers.append(Worker("attention", name, None, threads, loud=loud))
            stack.callback(workers[-1].close)
        for case in CASES:
            truth = truth_of(case)
            for worker in workers:
                worker.ask("choose", case=case)
                output = harness.output_of(worker, folder)[0]
                error = harness.relative_l2(output, truth)
                if not error < LIMIT:
                    raise SystemExit(
                        f"{worker.name} is off by {error:.1e} ({case}), over "
                        f"{LIMIT:.0e}: it computes something else.")
                held = worker.ask("held")  # known if it holds the context
                rows[case][worker.name] = {
                    "error": error, "turns": [], "peak": held if held and
                    held >= context_size(case) else None}
                notes.print(f"{case}, {worker.name}: relative L2 {error:.1e}")
            for _ in range(rounds):
                for worker in workers:
                    rows[case][worker.name]["turns"].append(harness.take_turn(
                        worker, 1, clock, warm=False))
        results = {worker.name: {
            **worker.ask("describe"), **harness.rates(worker, clock)}
            for worker in workers}
        for worker in workers if profile else ():
            worker.ask("choose", case=next(iter(CASES)))
            results[worker.name]["profile"] = worker.ask("profile")
    for table in rows.values():
        for name, row in table.items():
            row["seconds"] = statistics.median(harness.quiet_turns(row, clock))
            row |= {"title": IMPLEMENTATIONS[name].title,
                    "form": IMPLEMENTATIONS[name].form,
                    "peer": IMPLEMENTATIONS[name].peer}
    return {"words": WORDS, "threads": threads, "cores": cores,
            "cpu": harness.cpu_model(), "clock": clock, "rounds": rounds,
            "repeats": 1, "platform": platform.platform(),
            "results": results, "rows": rows}
