"""What a port on a mesh is asked, in each of its processes.

The model is a preset's at test size with vocabularies that two, four and eight
divide; a batch has eight rows, of which shards hold unequally many tokens.
"""

import dataclasses
import functools
import hashlib
import time

import numpy as np

from transformer_contract.batch import Batch
from parity_io.errors import plural
from transformer_contract.generation import GenerationConfig
from transformer_contract.sharding import copies
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases, kinks, lockstep, training_runs
from parity.check.runners import EngineRunner, compare_steps
from parity.matrix import measuring, mesh_causes
from parity.numerics import rounding, tolerances
from parity.numerics.comparator import DIVERGENCE, compare
from parity.subjects import SEQUENCE, SHARDED, mesh_axes

#: The meshes of the whole matrix.
MESHES = ("data=2,model=1", "data=1,model=2", "data=2,model=2",
          "data=4,model=2")

#: Rows of a batch, its lengths, sizes of vocabularies, and steps of training.
ROWS, SOURCE, TARGET, SOURCE_VOCAB, TARGET_VOCAB, STEPS = 8, 12, 8, 40, 48, 20

#: What gradients drop values by.
KEY = (3, 1415926535)

#: What is searched with.
SEARCHES = (GenerationConfig(max_tokens=10),
            GenerationConfig(method="beam", beam=3, max_tokens=10))

TRAINING = TrainingConfig(warmup_steps=400, clip_norm=1.0)


def config_of(preset):
    """The config of a preset on a mesh."""
    config = cases.test_size(preset)
    return config.replace(
        target_vocab=TARGET_VOCAB, source_vocab=SOURCE_VOCAB
        if config.source_vocab != config.target_vocab else TARGET_VOCAB)


def batch_of(config, step=0):
    """Eight pairs: five of padded_batch, three short ones."""
    first = cases.padded_batch(config, SOURCE, TARGET)
    pairs = []
    for what, ids, vocab in (("source", first.source, config.source_vocab),
                             ("target", first.target, config.target_vocab)):
        more = cases.ids(f"mesh {what} {step}", ROWS, ids.shape[1], vocab)
        more[:len(ids)] = np.where(
            ids == config.pad_id, ids, more[:len(ids)])
        for row, length in enumerate((4, 3, 2), start=len(ids)):
            more[row, length:] = config.pad_id
        pairs.append(more)
    source, target = pairs
    return Batch.of_ids(source, target, config.pad_id)


def training_run(config, steps):
    """The TrainingRun of a mesh: two batches a step, one of them as above."""
    config = training_runs.configured(config)
    return training_runs.TrainingRun(
        name=f"training, {plural(steps, 'step')} on a mesh", config=config,
        training=TRAINING, pairs=tuple(
            tuple(np.stack(ids) for ids in zip(*(
                (batch.source, batch.target) for batch in (
                    batch_of(config, step), batch_of(config, -step)))))
            for step in range(1, steps + 1)))


@functools.cache
def reference(preset, dtype, work):
    """The Reference, the Case of a work and its Oracle."""
    config = config_of(preset)
    batch = batch_of(config)
    case = cases.model_case(batch) if work == "forward" else (
        dataclasses.replace(
            cases.gradients_case(batch, config.pad_id), key=KEY))
    return measuring.with_truth(config, case, dtype, kinks.probes(config, 0))


@dataclasses.dataclass(frozen=True)
class Rank:
    """Which process of a mesh it is, of how many, and where they meet."""

    number: int
    size: int
    file: str


def measured(bench, subject, work, preset, steps, rank):
    """What a cell needs of a mesh, of all ranks but the first what it held.

    "held" are hashes of what every rank has whole, by name.
    """
    engine = engine_on_mesh(bench, subject, rank)
    start = time.perf_counter()
    differences, cause, held = (
        compared_training(engine, subject, preset, steps, rank)
        if work == "training"
        else COMPARED[work](engine, subject, preset, rank))
    return {"differences": differences, "cause": cause, "seconds": None,
            "preparing": time.perf_counter() - start,
            "held": {name: hashlib.sha256(array.tobytes()).hexdigest()
                     for name, array in held.items()}}


def unlike(held):
    """What ranks do not hold alike, as Differences by name.

    Args:
        held: {name: hash} of each rank.
    """
    words: dict = {}
    for rank, hashes in enumerate(held):
        for name, value in held[0].items():
            if hashes.get(name) != value:
                words.setdefault(name, f"rank {rank} and rank 0 differ in it")
    return measuring.divergences(words)


def versions(bench, rank):
    """What computes, by name."""
    return bench.engine.versions()


def engine_on_mesh(bench, subject, rank):
    """The engine of a mesh, made once in each process."""
    theirs = ports.meshes(bench.engine.NAME)
    if not hasattr(bench, "meshes"):
        theirs.join(rank.number, rank.size, rank.file)
        bench.meshes = {}
    if subject.mode not in bench.meshes:
        bench.meshes[subject.mode] = theirs.MeshEngine(
            mesh_axes(subject.mesh), subject.mode)
    return bench.meshes[subject.mode]


def diverge(differences):
    """Whether any of these Differences is a divergence."""
    return any(one.verdict == DIVERGENCE for one in differences.values())


def check_placement(engine, subject, model):
    """Differences by name of what does not lie on a mesh as its Subject says.

    It is asked of all ranks, which count together.
    """
    axes, words = mesh_axes(subject.mesh), {}
    for name, count in engine.copies(model).items():
        expected = copies(name, axes, subject.mode in SHARDED,
                          subject.mode in SEQUENCE)
        if count != expected:
            words[name] = (f"all devices together hold it {count:g} times, "
                           f"and not {expected:g}")
    return measuring.divergences(words)


def check_sharding(engine, subject, runner):
    """Differences of where a model lies, and of what it is, from a Subject."""
    return measuring.wrong(subject, runner) | check_placement(
        engine, subject, runner.model)


def check_local_reads(engine, subject, tokens=True):
    """Differences where a device reads more than its own shard.

    Args:
        tokens: whether those of a sequence are divided too.
    """
    axes, words = mesh_axes(subject.mesh), {}
    parts = {"rows": (engine.rows_read, ROWS, axes["data"])}
    if tokens and subject.mode in SEQUENCE:
        parts["tokens"] = engine.tokens_read, TARGET, axes["model"]
    for name, (read, of, devices) in parts.items():
        if read != of // devices:
            words[name] = (f"a device reads {read} of {of}, and not "
                           f"{of // devices}")
    return measuring.divergences(words)


def compared_outputs(engine, subject, preset, rank):
    """The Difference of the outputs of all shards, its cause, and they."""
    ours, case, truth = reference(preset, subject.dtype, "forward")
    runner = EngineRunner(
        engine, ours.exact.config, ours.arrays, subject.dtype)
    wrong = check_sharding(engine, subject, runner)
    output = engine.predict(runner.model, *case.inputs)
    held = {"output": output}
    if rank.number:
        return None, "", held
    differences = compare_steps(
        {"output": output}, truth, subject.dtype, "output".__ne__)
    if not diverge(differences):
        return (wrong | check_local_reads(engine, subject) | differences, "",
                held)

    def steps_of(weights):
        exact = ours.exact.engine
        return exact.forward(exact.build(
            "transformer", ours.exact.config, weights), *case.inputs)

    return differences, mesh_causes.cause_in_output(
        output.astype(np.float64), truth.steps["output"], ours.exact.weights,
        steps_of, mesh_axes(subject.mesh)), held


def compared_gradients(engine, subject, preset, rank):
    """The Differences of a loss and its gradients, their cause, and they."""
    ours, case, truth = reference(preset, subject.dtype, "gradients")
    runner = EngineRunner(
        engine, ours.exact.config, ours.arrays, subject.dtype)
    wrong = check_sharding(engine, subject, runner)
    steps = runner.steps(case, [
        rounding.rounded(x, subject.dtype) for x in case.inputs])
    if rank.number:
        return None, "", steps
    differences = compare_steps(steps, truth, subject.dtype, runner.fused)
    if not diverge(differences):
        return (wrong | check_local_reads(engine, subject) | differences, "",
                steps)
    return differences, mesh_causes.cause_in_gradients(
        {name.removeprefix("grad "): array for name, array in steps.items()},
        mesh_causes.Shards(
            ours.exact.engine, ours.exact.model, case.inputs,
            np.array(case.key, np.uint32), mesh_axes(subject.mesh)["data"])
    ), steps


def compared_training(engine, subject, preset, steps, rank):
    """The Differences of every step of training, the first's cause, and what
    was trained.

    Half-way the model is asked, which must not matter to the next steps.
    """
    run = training_run(config_of(preset), steps)
    weights = probe_weights(run.config)
    runner = lockstep.TrainingRunner(engine, run, weights)
    truths = None if rank.number else lockstep.ReferenceRun(run, weights)
    differences: dict = {}
    cause, before = "", weights
    for step, pairs in enumerate(run.pairs, start=1):
        found = runner.step(*pairs)
        asked = step == (steps + 1) // 2 and runner.answer(*run.pairs[0])
        if truths is None:
            continue
        truth = truths.step(*pairs)
        of_step = {f"step {step} {kind}": truth.compare(kind, found[kind])
                   for kind in lockstep.KINDS}
        if asked:
            of_step[f"step {step} answer"] = truths.answer(
                *run.pairs[0]).compare(lockstep.ANSWER, asked[lockstep.ANSWER])
        if diverge(of_step) and not diverge(differences):
            cause = mesh_causes.cause_in_step(
                found["weights"], truth.steps["weights"], before,
                "" if run.config.tied == "none" else next(iter(weights)))
        differences |= of_step
        before = truth.steps["weights"]
    trainer = runner.trainer
    return (differences | check_placement(engine, subject, trainer.model)
            | check_local_reads(engine, subject, tokens=False), cause,
            engine.export(trainer.model) | engine.moments(trainer))


def compared_generation(engine, subject, preset, rank):
    """The Differences of what searches found, no cause, and what it was."""
    ours, case, _ = reference(preset, subject.dtype, "forward")
    runner = EngineRunner(
        engine, ours.exact.config, ours.arrays, subject.dtype)
    differences = check_sharding(engine, subject, runner)
    held: dict = {}
    for settings in SEARCHES:
        found = engine.generate(runner.model, case.inputs[0], settings)
        held |= {f"{settings.method} {name}": array
                 for name, array in found.items()}
        differences |= check_local_reads(engine, subject, tokens=False)
        if rank.number:
            continue
        truth = ours.exact.engine.generate(
            ours.exact.model, case.inputs[0], settings)
        differences |= {
            f"{settings.method} tokens": compare(
                found["tokens"], truth["tokens"], 0.0),
            f"{settings.method} scores": compare(
                found["scores"], truth["scores"],
                tolerances.score_limit(subject.dtype, 0.0))}
    return differences, "", held


#: What a mesh is asked for a work that is no training.
COMPARED = {"forward": compared_outputs, "gradients": compared_gradients,
            "generation": compared_generation}
