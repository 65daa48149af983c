"""The commands ``parity train`` and ``parity train curves``."""

import contextlib
import dataclasses
import pathlib
import sys
import time
import warnings
from typing import Annotated, Optional

import typer
from rich.progress import (
    BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn,
    TimeRemainingColumn)

from transformer_contract.config import preset
from parity_io.errors import InputError, plural, one_of
from parity_io.files import check_writable, write_json
from transformer_contract.training import TrainingConfig
from parity import ports
from parity.commands.options import Json, key_values
from parity.commands.shell import INTERRUPTED, told_plainly
from parity.render import terminal

PICTURES = (".png", ".svg", ".pdf")


def option(kind, text, *names, **more):
    """A typer option that is None unless given."""
    return Annotated[Optional[kind], typer.Option(*names, help=text, **more)]


def train(
    task: Annotated[Optional[str], typer.Argument(
        metavar="TASK", help="What to train on: dates or phrases.")] = None,
    data: option(pathlib.Path, "Train on a file instead: source, tab, target "
                 "in each line.", metavar="FILE") = None,
    port: Annotated[str, typer.Option(
        metavar="NAME", help="numpy, torch, keras or jax.")] = "torch",
    out: option(pathlib.Path, "The run's folder.  [default: runs/TASK-PORT]",
                metavar="DIR") = None,
    resume: Annotated[bool, typer.Option(
        "--resume", help="Go on from the folder's checkpoint; any port can.",
    )] = False,
    steps: option(int, "Train up to this step.", min=1, max=2**53,
                  metavar="N") = None,
    every: option(int, "Validate and save each N steps.  [default: 500]",
                  min=1, metavar="N") = None,
    average: option(int, "End with the mean of the last N checkpoints.  "
                    "[default: 1]", min=1, max=1000,
                    metavar="N") = None,
    batch: option(int, "Pairs in a batch.  [default: the task's]", min=1,
                  max=2**16, metavar="N") = None,
    accumulate: option(int, "Batches in a step.  [default: 1]", min=1,
                       max=2**16, metavar="N") = None,
    preset: option(str, "The formulas of a preset of parity check.",
                   metavar="VARIANT") = None,
    vocab: option(int, "Tokens of a file's tokenizer.  [default: 1000]",
                  min=260, max=2**24, metavar="N") = None,
    dtype: option(str, "float32 or float64.  [default: float32]",
                  metavar="NAME") = None,
    words: option(list[str], "A field of the model or of its training, such as "
                  "d_ff=256, dropout=0.1, learning_rate=0.5 or seed=1; repeat "
                  "it.  [default: the task's]", "--set",
                  metavar="FIELD=VALUE") = None,
    device: Annotated[str, typer.Option(
        metavar="NAME", help="Where to compute.")] = "cpu",
    mesh: option(str, "Train on a mesh, data=2,model=2: batches are divided "
                 "along data, weights along model. --resume may name another.",
                 metavar="WORDS") = None,
    mode: option(str, "How torch divides along data: DDP or FSDP2.  "
                 "[default: DDP]", metavar="NAME") = None,
    json_file: Json = None,
):
    """Train a model, step for step the same in every port. The run's
    folder holds its checkpoint, tokenizer, curve and, at the end, its weights.
    Ctrl-C stops it; --resume goes on from the last checkpoint.
    """
    from parity.runs import training
    from parity.runs.averaging import Averaging
    from parity.runs.tasks import TASKS, File
    from parity.runs.tasks import task as known_task
    arguments = {name: value for name, value in {
        "batch": batch, "accumulate": accumulate, "preset": preset,
        "vocab": vocab, "dtype": dtype, "set": words}.items()
        if value is not None}
    with told_plainly():
        one_of(port, ("numpy", *ports.known_ports()), "port")
        if (task is None) == (data is None):
            raise InputError(
                "nothing says what to train on; give one of a task, such as "
                "dates, and --data FILE.")
        folder = out or pathlib.Path("runs") / (
            f"{task or pathlib.Path(data).stem}-{port}")
        check_writable(json_file, read=[data, *(
            folder / name for name in training.OWN)])
        there = (folder / training.CHECKPOINT).exists()
        if resume and not there:
            raise InputError(
                f"the folder {str(folder)!r} holds no checkpoint to go on "
                "from; start without --resume.")
        if there and not resume:
            raise InputError(
                f"the folder {str(folder)!r} holds a run already; go on with "
                "--resume or choose another --out.")
        if resume:
            if arguments:
                raise InputError(
                    f"--{next(iter(arguments))} is fixed by the checkpoint; "
                    "leave it out, or start another run.")
            settings = training.settings_of(folder)
            if settings.task != task and (task or settings.task in TASKS):
                raise InputError(
                    f"the folder {str(folder)!r} is a run on "
                    f"{settings.task}; name that, or choose another --out.")
            job = (known_task(task) if task
                   else File(str(data), settings.vocab))
        else:
            job = (known_task(task) if task
                   else File(str(data), arguments.get("vocab", 1000)))
            settings = settings_from(arguments, task or str(data), job)
        settings = dataclasses.replace(settings, **{
            name: value for name, value in (
                ("steps", steps), ("every", every), ("average", average))
            if value is not None})
        if data is not None:
            job.check(settings.config)
        with engine_for(port, device, mesh, mode, settings) as engine, (
                training.claimed(folder, resume)), warnings.catch_warnings():
            # Of a loss that is no number a sentence tells, at its step.
            warnings.simplefilter("ignore", RuntimeWarning)
            for line in ports.unsupported_in_fast(
                    engine, settings.config, "training"):
                print(line, file=sys.stderr)
            run = training.Run(engine, job, settings, folder, device)
            if resume:
                run.load()
            run.check_room()
            steps = settings.steps or job.steps
            results = follow(run, steps, settings.every, Averaging(
                run, steps, settings.every, settings.average))
        if json_file:
            write_json(json_file, results)


@contextlib.contextmanager
def engine_for(port, device, mesh, mode, settings):
    """The engine of a run, on a mesh if one is given; its ranks end with it.

    Raises:
        InputError: it cannot run here, or the mesh does not fit the run.
    """
    if mesh is None:
        if mode is not None:
            raise InputError(
                "--mode says how a mesh is divided; give --mesh too.")
        yield ports.ready(port, device, "fast")
        return
    if device != "cpu":
        raise InputError(
            "meshes are of processors alone; leave --device out.")
    from parity.runs.on_mesh import OnMesh
    engine = OnMesh(port, mesh, mode, settings.config, settings.rows)
    try:
        yield engine
    finally:
        engine.close()


def settings_from(arguments, name, task):
    """Settings from the task's own and what was given on the command line."""
    from parity.runs.training import Settings
    config, training = task.config, TrainingConfig(**task.training)
    if "preset" in arguments:
        variant = preset(arguments["preset"])
        config = config.replace(**{field: getattr(variant, field) for field in (
            "residual", "norm", "norm_rounding", "norm_eps", "final_norm",
            "final_norm_eps", "positions", "activation", "gated",
            "feed_forward_bias", "output", "tied", "label_smoothing",
            "dropout")})
    changes = key_values(arguments.get("set", ()))
    for field in changes:
        one_of(field, (*config.as_dict(), *training.as_dict()), "field")
    config, training = (each.replace(**{
        field: value for field, value in changes.items()
        if field in each.as_dict()}) for each in (config, training))
    return Settings(
        task=name, config=config, training=training,
        rows=arguments.get("batch", task.rows),
        accumulate=arguments.get("accumulate", 1),
        dtype=one_of(arguments.get("dtype", "float32"), ("float32", "float64"),
                     "dtype"),
        vocab=arguments.get("vocab", 1000))


def follow(run, steps, every, averaging):
    """Train with a progress bar, test, and say what was found."""
    from parity.render import curves as drawing
    from parity.numerics.words import listed
    from parity.runs import doubt, training
    out, err = terminal.console(), terminal.console(stderr=True)
    if run.settings.training.masks == "native":
        out.print("Masks are the framework's own: this run cannot be compared "
                  "with another port's, nor resumed to the bit.")
    start, first = time.perf_counter(), run.step
    with Progress(
            TextColumn("{task.description}"), BarColumn(),
            MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
            console=err, disable=not err.is_terminal,
            transient=True) as progress:
        bar = progress.add_task("training", total=steps, completed=run.step)

        def on_step(row):
            progress.update(bar, completed=row[0],
                            description=f"loss {row[1]:.4f}")

        def on_validation(row):
            passed = time.perf_counter() - start
            exact = ("" if row[5] is None else
                     f", validation {row[4]:.4f}, exact {row[5]:.1%}")
            out.print(f"step {row[0]}: loss {row[1]:.4f}{exact}, learning "
                      f"rate {row[3]:.2e}, {passed:.0f} s")

        try:
            training.train(run, steps, every, on_step, on_validation,
                           averaging.keep)
        except KeyboardInterrupt:
            err.print(f"stopped at step {run.step}; go on from the last "
                      "checkpoint with --resume.")
            raise typer.Exit(INTERRUPTED) from None
    seconds = time.perf_counter() - start
    model = averaging.model()
    groups, right = training.test(run, model)
    exact = sum(a for a, _ in groups.values())
    count = sum(b for _, b in groups.values())
    results = {
        "port": run.engine.NAME, "task": run.settings.task, "step": run.step,
        "averaged": averaging.steps,
        "seconds": seconds, "exact": exact, "tested": count,
        "groups": {name: list(pair) for name, pair in groups.items()}}
    run.save_weights(model, averaged=averaging.steps, exact=exact,
                     tested=count, doubtful_below=doubt.border(
                         run.engine, model, run.task.tokenizer, right))
    drawing.draw({run.engine.NAME: run.curve}, run.folder / training.PICTURE)
    if count:
        out.print(results_table(groups))
        out.print(f"exact: {exact} of {count}, {exact / count:.2%}")
    mean = (f", the mean after steps {listed([*map(str, averaging.steps)])},"
            if len(averaging.steps) > 1 else "")
    out.print(f"{plural(run.step - first, 'step')} in {seconds:.0f} s; "
              f"weights{mean} in {run.folder / training.WEIGHTS}")
    return results


def results_table(groups):
    """A row a group: how many answers are exact."""
    table = terminal.plain_table(
        "group", *map(terminal.numbers, ("exact", "of")))
    for name, (exact, count) in groups.items():
        table.add_row(name, str(exact), str(count))
    return table


def curves(
    folders: Annotated[list[pathlib.Path], typer.Argument(
        metavar="DIR…", help="Folders of runs; the first is what the others "
        "are held against.")],
    out: Annotated[pathlib.Path, typer.Option(
        metavar="FILE", help="The picture: .png, .svg or .pdf.")
    ] = pathlib.Path("curves.png"),
    table: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="FILE", help="Write the numbers as well, separated by tabs."
    )] = None,
):
    """Draw the learning curves of several runs on one picture."""
    from parity.render import curves as drawing
    with told_plainly():
        if out.suffix not in PICTURES:
            raise InputError(
                f"{str(out)!r} is no picture that can be drawn; end it in "
                f"{', '.join(PICTURES)}.")
        check_writable(out, table, read=folders)
        read = drawing.read(folders)
        drawing.draw(read, out)
        print(f"drew {out}")
        if table:
            drawing.write_table(read, table)
            print(f"wrote {table}")
