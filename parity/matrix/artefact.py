"""A model in another runtime's format, with the numbers that it must give.

A folder has ``model.onnx``; ``vectors.safetensors``, batches of several shapes
and what the reference answers to them; and ``artefact.json``, their limits and
what made it. To replay it takes NumPy and the runtime, and no framework.
"""

import hashlib
import importlib.util
import pathlib

import numpy as np

from contract import weights
from contract.checkpoints.folder import read_json
from contract.errors import InputError, one_of
from contract.files import check_ordinary, new_folder, told, write_json
from parity import ports
from parity.check import cases
from parity.check.runners import Reference
from parity.matrix.cells import Matrix, cell_of, failed, left_out
from parity.numerics.comparator import compare
from parity.targets import Target

#: What this program writes, and the newest that it reads.
SCHEMA = 1

MODEL, VECTORS, FACTS = "model.onnx", "vectors.safetensors", "artefact.json"

#: The dtypes that NumPy and the runtime both have.
DTYPES = ("float64", "float32", "float16")

#: The formats, and the port that writes each.
FORMATS = {"onnx": ("torch",)}

#: S and T of the batches: of one it is traced, by the others it is asked.
SIZES = ((cases.SOURCE, cases.TARGET), (4, 6), (1, 1), (2, 5))

INPUTS = ("source", "target", "source_mask", "target_mask")


def write(path, name, port, config, arrays, dtype):
    """Write a model as a new folder.

    Args:
        path: the folder's.
        name: the model's, to be said.
        port: whose exporter writes it.
        config, arrays: of the model.
        dtype: in which it is to compute.

    Raises:
        InputError: it cannot be written so; it says why.
    """
    path = pathlib.Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{str(path)!r} is there already; give a new folder.")
    one_of(port, FORMATS["onnx"], "port with --to onnx")
    one_of(dtype, DTYPES, "dtype")
    if config.stacks != "both":
        raise InputError(
            f"{name} has one stack, and what --to onnx writes has two.")
    engine = ports.ready(port)
    exporter = ports.exporter(port)
    if reason := exporter.missing():
        raise InputError(f"{reason}; install 'transformer-parity[onnx]'.")
    reference = Reference(config, arrays, dtype)
    vectors, limits = {}, []
    for number, size in enumerate(SIZES):
        case = cases.model_case(cases.padded_batch(config, *(
            min(length, most) for length, most in zip(
                size, (config.source_length, config.max_length)))))
        truth = reference.truth(case)
        limits.append(float(truth.limit("output", dtype)))
        vectors |= {f"{number}.{word}": array for word, array in (
            *zip(INPUTS, case.inputs), ("output", truth.steps["output"]))}
    model = engine.build("transformer", config, reference.arrays, dtype)
    content = exporter.to_onnx(model, [
        vectors[f"0.{word}"] for word in INPUTS])
    with told(path), new_folder(path) as folder:
        folder = pathlib.Path(folder)
        (folder / MODEL).write_bytes(content)
        weights.save(folder / VECTORS, vectors)
        write_json(folder / FACTS, {
            "schema": SCHEMA, "format": "onnx", "name": name, "port": port,
            "versions": engine.versions(), "dtype": dtype, "limits": limits,
            "sha256": hashlib.sha256(content).hexdigest()})


def read(path):
    """What a folder says of itself, its model's bytes and its vectors.

    Raises:
        InputError: it is no artefact, a newer version's, or damaged.
    """
    path = pathlib.Path(path)
    if not (path / FACTS).is_file():
        raise InputError(
            f"{str(path)!r} has no {FACTS}; give a folder of parity export "
            "--to onnx.")
    facts = read_json(path / FACTS)
    schema = facts.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        raise InputError(
            f"{str(path)!r} is of a newer version of parity (schema {schema});"
            " install that one.")
    vectors, _ = weights.load(path / VECTORS)
    check_ordinary(path / MODEL)
    try:
        content = (path / MODEL).read_bytes()
    except OSError as error:
        raise InputError(f"{str(path / MODEL)!r} cannot be read "
                         f"({error.strerror}); export it again.") from None
    limits = facts.get("limits")
    whole = (
        hashlib.sha256(content).hexdigest() == facts.get("sha256")
        and facts.get("dtype") in DTYPES and isinstance(limits, list)
        and limits and all(isinstance(one, float) for one in limits)
        and {f"{number}.{word}" for number in range(len(limits))
             for word in (*INPUTS, "output")} == vectors.keys())
    if not whole:
        raise InputError(
            f"{str(path)!r} is damaged: its files are not those that its "
            f"{FACTS} names; export it again.")
    return facts, content, vectors


def replay(path):
    """The Matrix of an artefact: one cell, of what the runtime answers."""
    facts, content, vectors = read(path)
    target = Target(str(facts.get("port")), mode="ONNX Runtime",
                    dtype=facts["dtype"])
    matrix = Matrix(str(facts.get("name")))
    if importlib.util.find_spec("onnxruntime") is None:
        matrix.cells.append(left_out(
            target, "forward", "onnxruntime is not installed"))
        return matrix
    import onnxruntime
    matrix.places[0]["versions"] = {"numpy": np.__version__,
                                "onnxruntime": onnxruntime.__version__}
    try:
        session = onnxruntime.InferenceSession(
            content, providers=["CPUExecutionProvider"])
        differences = {
            f"output of batch {number + 1}": compare(
                session.run(None, {
                    word: vectors[f"{number}.{word}"] for word in INPUTS})[0],
                vectors[f"{number}.output"], limit, facts["dtype"])
            for number, limit in enumerate(facts["limits"])}
    except Exception as error:  # the runtime's own, such as an unknown operator
        words = " ".join(str(error).split())[:200]
        matrix.cells.append(failed(
            target, "forward", f"onnxruntime cannot run it: {words}"))
    else:
        matrix.cells.append(cell_of(target, "forward", {
            "differences": differences, "seconds": None, "preparing": None}))
    return matrix
