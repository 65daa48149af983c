"""``parity check --seeds``: whether sound ports ever raise an alarm."""

import datetime
import platform
import re

import typer

from parity_io.errors import plural
from parity_io.files import write_json
from parity import ports
from parity.commands.shell import DIVERGED, NOTHING
from parity.render import terminal


def check_seeds(names, dtypes, count, json_file):
    """Compare ports over seeds in every setup; print and exit.

    Exit status: 0 without an alarm, 1 with one or a framework that is too
    old, 4 nothing was compared.
    """
    from parity.check import seeds
    out, tallies = terminal.console(), []
    absent = list(filter(None, map(ports.absent, names)))
    names = [name for name in names
             if name not in (one.port for one in absent)]
    chosen = list(seeds.setups())
    with terminal.progress(out) as progress:
        bar = progress.add_task(chosen[0].name)
        for setup, dealt, tally in (
                seeds.tallies(names, dtypes, count, chosen)
                if names else ()):
            tallies.append((setup, dealt, tally))
            progress.update(bar, description=(
                f"{len(tallies)} of {len(chosen)} setups · {setup.name}"))
    if tallies:
        report(out, tallies, names, dtypes)
    for one in absent:
        out.print(f"not checked: {one.port}, {one.reason}", markup=False)
    if json_file:
        write_json(json_file, as_json(tallies, count))
    compared = sum(tally.compared for *_, tally in tallies)
    alarms = sum(len(tally.alarms) for *_, tally in tallies)
    out.print(f"{plural(count, 'seed')}, {plural(compared, 'comparison')}: "
              f"{plural(alarms or 'no', 'false alarm')}"
              if compared else "nothing was compared")
    old = any(isinstance(one, ports.TooOld) for one in absent)
    raise typer.Exit(
        DIVERGED if alarms or old else 0 if compared else NOTHING)


def report(out, tallies, names, dtypes):
    """A line a setup: the largest error over its limit, and the alarms."""
    out.print("The largest error as a share of its limit, forward and "
              "gradients:")
    columns = [(port, dtype) for dtype in dtypes for port in names]
    table = terminal.plain_table("setup", "BLAS", *map(terminal.numbers, (
        "seeds", *(f"{dtype}\n{port}" for port, dtype in columns))))
    for setup, dealt, tally in tallies:
        worst = [tally.worst(*column) for column in columns]
        table.add_row(setup.name, tally.blas, str(len(dealt)), *(
            f"{one.share:.2g}" if one else "–" for one in worst))
    out.print(table)
    for dtype in dtypes:
        every = [(one, setup, key) for setup, _, tally in tallies
                 for key, one in tally.nearest.items() if key[1] == dtype]
        if every:
            one, setup, (port, _, case) = max(
                every, key=lambda each: each[0].share)
            out.print(
                f"Nearest in {dtype}: {port}, {case}, seed {one.seed}, "
                f"{one.step}: {one.error:.1e} of {one.limit:.1e} "
                f"({setup.name}).", markup=False, soft_wrap=True)
    for setup, _, tally in tallies:
        for alarm in tally.alarms:
            out.print(f"FALSE ALARM ({setup.name}): {alarm}", markup=False,
                      soft_wrap=True)


def as_json(tallies, count):
    """All of it as plain data, with the day and the machine."""
    from parity.check.seeds import processor
    model = re.search(r"^model name\s*:\s*(.*)$", processor(), re.MULTILINE)
    return {
        "schema": 1, "seeds": count,
        "date": datetime.date.today().isoformat(),
        "platform": platform.platform(),
        "processor": model[1] if model else platform.processor(),
        "versions": tallies[0][-1].versions if tallies else {},
        "setups": [{
            "name": setup.name, "variables": setup.variables,
            "torch_mkldnn": setup.mkldnn, "blas": tally.blas,
            "seeds": [dealt.start, dealt.stop],
            "compared": tally.compared, "alarms": tally.alarms,
            "nearest": [{
                "port": port, "dtype": dtype, "case": case,
                "share": one.share, "error": one.error, "limit": one.limit,
                "seed": one.seed, "step": one.step}
                for (port, dtype, case), one in tally.nearest.items()]}
            for setup, dealt, tally in tallies],
    }
