"""A model in another runtime's format, with the numbers that it must give.

A folder has ``model.onnx``; ``vectors.safetensors``, batches of several shapes
and what the reference answers to them; and ``artefact.json``, their limits and
what made it. To replay it takes NumPy and the runtime, and no framework.
"""

import hashlib
import pathlib

import numpy as np

from transformer_contract import onnx_session, weights
from parity_io.checkpoints.folder import read_json
from parity_io.errors import InputError, is_whole, not_installed, one_of
from parity_io.files import (
    check_ordinary, new_folder, as_input_error, write_json)
from transformer_contract.onnx_session import INPUTS
from parity import ports
from parity.check import cases
from parity.check.runners import Reference
from parity.matrix.cells import Matrix, cell_of, failed, left_out
from parity.numerics import tolerances
from parity.numerics.comparator import compare
from parity.subjects import ONNX, Subject

#: What this program writes, and the newest that it reads.
SCHEMA = 1

MODEL, VECTORS, FACTS = "model.onnx", "vectors.safetensors", "artefact.json"

#: The dtypes that NumPy and the runtime both have.
DTYPES = ("float64", "float32", "float16")

#: The formats, and the ports that write each.
FORMATS = {"onnx": ("torch", "keras", "jax")}

#: S and T of the batches: by one it is traced, by the others it is asked; the
#: last are as long as the model reads and a file of vectors should hold. Where
#: lengths are not free, all have those of the first. And which rows they have,
#: where their number is free, and where it is not.
LONGEST, VALUES = 512, 2**18
SIZES = ((cases.SOURCE, cases.TARGET), (4, 6), (1, 1), (2, 5),
         (LONGEST, LONGEST))
ROWS = ((0, 1, 2, 3, 4), (3, 1), (2,), (4, 0, 1, 3, 2, 4), (0, 2))
ORDERS = ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (3, 0, 3, 0, 1), (2, 2, 4, 1, 1),
          (1, 4, 0, 3, 2))

#: The dtypes of vectors.
KINDS = dict(zip((*INPUTS, "output"), (
    "int64", "int64", "bool", "bool", "float64")))

#: The fewest batches of an artefact, of this and of earlier versions.
FEWEST = 4


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
    if port == "torch" and min(config.source_length, config.max_length) < 2:
        raise InputError(
            f"{name} reads one token, and what --to onnx writes is traced "
            "with two or more.")
    if config.stacks != "both":
        raise InputError(
            f"{name} has one stack, and what --to onnx writes has two.")
    engine = ports.ready(port)
    exporter = ports.exporter(port)
    if reason := exporter.missing(dtype):
        raise InputError(f"{reason}; " + (
            "install it, or 'transformer-parity[onnx]'."
            if "installed" in reason else "choose another dtype or port."))
    reference = Reference(config, arrays, dtype)
    vectors: dict = {}
    limits = []
    for number, batch in enumerate(batches(config, exporter.FREE)):
        case = cases.model_case(batch)
        truth = reference.truth(case)
        limits.append(min(float(truth.limit("output", dtype)),
                          tolerances.largest_limit(dtype)))
        vectors |= {f"{number}.{word}": array for word, array in (
            *zip(INPUTS, case.inputs), ("output", truth.steps["output"]))}
    model = engine.build("transformer", config, reference.arrays, dtype)
    content = exporter.to_onnx(model, [
        vectors[f"0.{word}"] for word in INPUTS])
    with as_input_error(path), new_folder(path) as folder:
        folder = pathlib.Path(folder)
        (folder / MODEL).write_bytes(content)
        weights.save(folder / VECTORS, vectors)
        answers = (folder / VECTORS).read_bytes()
        write_json(folder / FACTS, {
            "schema": SCHEMA, "format": "onnx", "name": name, "port": port,
            "versions": engine.versions(), "dtype": dtype, "limits": limits,
            "sha256": hashes(content, answers)})


def batches(config, free):
    """The batches of an artefact; by the first it is traced.

    Args:
        free: what of a batch may be another: "rows", "lengths", or nothing.
    """
    most = config.source_length, min(config.max_length, max(
        cases.TARGET, VALUES // config.target_vocab))
    found = []
    for size, rows, order in zip(SIZES, ROWS, ORDERS):
        whole = cases.padded_batch(config, *map(
            min, size if "lengths" in free else SIZES[0], most))
        chosen = list(rows if "rows" in free else order)
        found.append(type(whole)(*(array[chosen] for array in whole)))
    return found


def hashes(content, answers):
    """The SHA-256 of a model's bytes and of those of its vectors, by file."""
    return {MODEL: hashlib.sha256(content).hexdigest(),
            VECTORS: hashlib.sha256(answers).hexdigest()}


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
    if is_whole(schema) and schema > SCHEMA:
        raise InputError(
            f"{str(path)!r} is of a newer version of parity (schema {schema});"
            " install that one.")
    vectors, _ = weights.load(path / VECTORS)
    content = content_of(path / MODEL)
    if (hashes(content, content_of(path / VECTORS)) != facts.get("sha256")
            or not is_whole(schema) or schema < 1 or not sound(facts, vectors)):
        raise InputError(
            f"{str(path)!r} is damaged: its files are not those that its "
            f"{FACTS} names; export it again.")
    return facts, content, vectors


def content_of(path):
    """The bytes of a file of an artefact; InputError if it has none."""
    check_ordinary(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read "
                         f"({error.strerror}); export it again.") from None


def sound(facts, vectors):
    """Whether what an artefact says of itself can be, beside its vectors."""
    form, limits = facts.get("format"), facts.get("limits")
    return (
        form in tuple(FORMATS) and facts.get("port") in FORMATS[form]
        and isinstance(facts.get("name"), str)
        and facts.get("dtype") in DTYPES
        and isinstance(limits, list) and len(limits) >= FEWEST
        and all(isinstance(one, float)
                and 0 < one <= tolerances.largest_limit(facts["dtype"])
                for one in limits)
        and {f"{number}.{word}" for number in range(len(limits))
             for word in (*INPUTS, "output")} == vectors.keys()
        and all(array.dtype.name == KINDS[name.partition(".")[2]]
                for name, array in vectors.items())
        and len({b"".join(vectors[f"{number}.{word}"].tobytes()
                          for word in INPUTS)
                 for number in range(len(limits))}) == len(limits))


def replay(path):
    """The Matrix of an artefact: one cell, of what the runtime answers."""
    facts, content, vectors = read(path)
    subject = Subject(facts["port"], mode=ONNX, dtype=facts["dtype"])
    matrix = Matrix(facts["name"])
    if words := not_installed(["onnxruntime"]):
        matrix.cells.append(left_out(subject, "forward", words))
        return matrix
    import onnxruntime
    matrix.places[0]["versions"] = {"numpy": np.__version__,
                                "onnxruntime": onnxruntime.__version__}
    try:
        session = onnx_session.Session(onnxruntime, content)
        differences = {
            f"output of batch {number + 1}": compare(
                session(*(vectors[f"{number}.{word}"] for word in INPUTS)),
                vectors[f"{number}.output"], limit, facts["dtype"])
            for number, limit in enumerate(facts["limits"])}
    except Exception as error:  # the runtime's own, such as an unknown operator
        words = " ".join(str(error).split())[:200]
        matrix.cells.append(failed(
            subject, "forward", f"onnxruntime cannot run it: {words}"))
    else:
        matrix.cells.append(cell_of(subject, "forward", {
            "differences": differences, "seconds": None, "preparing": None}))
    return matrix
