"""ONNX files: run by ONNX Runtime, and seen node by node."""

import pathlib

import numpy as np

from parity_io.errors import InputError, not_installed
from parity.exported.model import ExportedModel, NotInstalled, fitted, named


def loaded(path):
    """The onnx.ModelProto of a file.

    Raises:
        InputError: it is no model.
        NotInstalled: onnx is not there.
    """
    need("onnx")
    import onnx
    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except Exception as error:  # protobuf's, or the checker's
        words = " ".join(str(error).split())[:160].rstrip(".")
        raise InputError(f"{str(path)!r} is no ONNX model that can be read "
                         f"({words}); export it again.") from None
    return model


def need(name):
    """Raise NotInstalled where a package is not there."""
    if words := not_installed([name]):
        raise NotInstalled(words)


def opened(model, file, inputs, keywords):
    """An ExportedModel of an ONNX model, run by ONNX Runtime.

    Args:
        model: an onnx.ModelProto.
        file: what it is called.
        inputs, keywords: of the other model.
    """
    need("onnxruntime")
    import onnx
    import onnxruntime
    session = started(model, file)
    initial = {each.name for each in model.graph.initializer}
    asked = [(each.name, onnx.helper.tensor_dtype_to_np_dtype(
        each.type.tensor_type.elem_type), [
            size.dim_value if size.HasField("dim_value") else size.dim_param
            for size in each.type.tensor_type.shape.dim])
        for each in model.graph.input if each.name not in initial]
    given = fitted(asked, inputs, keywords, file)
    try:
        made = session.run(None, given)
    except Exception as error:  # the runtime's own
        raise InputError(failed(file, error)) from None
    outputs = named({each.name: array for each, array in zip(
        session.get_outputs(), made)})
    from parity.exported.onnx_program import OnnxRunner
    runner = OnnxRunner(model, given, file)
    return ExportedModel(
        "onnx", "ONNX model", given, outputs,
        {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__},
        {name: array for name, array in runner.parameters.items()
         if array.ndim}, lambda: runner, [], model)


def of_session(session, inputs, keywords):
    """An ExportedModel of an onnxruntime.InferenceSession, whose graph is read
    from the file that it was made of."""
    path = getattr(session, "_model_path", None)
    content = getattr(session, "_model_bytes", None)
    if path or content:
        import onnx
        model = loaded(path) if path else onnx.load_from_string(content)
        return opened(model, path or "the model", inputs, keywords)
    raise InputError("the session was made of no file that can be read; give "
                     "the file itself.")


def started(model, file, plain=False):
    """An onnxruntime.InferenceSession on the processor.

    Args:
        plain: whether nothing in the graph is optimised.
    """
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if plain:
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options,
            providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InputError(failed(file, error)) from None


def failed(file, error):
    """A sentence on what the runtime cannot do."""
    words = " ".join(str(error).split())[:200].rstrip(".")
    return (f"ONNX Runtime cannot run {pathlib.PurePath(file).name} "
            f"({type(error).__name__}: {words}); export it otherwise.")


def inner(model, given, file):
    """{name: array} of every value of a graph, by ONNX Runtime, of which
    nothing is optimised."""
    import onnx
    every = onnx.ModelProto()
    every.CopyFrom(model)
    there = {each.name for each in every.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in there:
                every.graph.output.append(onnx.ValueInfoProto(name=name))
    session = started(every, file, plain=True)
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, given)))


def runtime_differs(foreign, file):
    """The first node that ONNX Runtime computes otherwise than ONNX's
    standard, which the graph is computed by in float64.

    Returns:
        (number of the node, node, error), or None.
    """
    from parity.exported.onnx_program import exact_values
    given = foreign.inputs
    real, truth = inner(foreign.proto, given, file), exact_values(
        foreign.runner())
    for number, node in enumerate(foreign.proto.graph.node, 1):
        for name in node.output:
            if name in real and name in truth:
                error = unlike(real[name], truth[name])
                if error > 1e-3:
                    return number, node, error
    return None


def unlike(one, two):
    """How far two arrays are apart, over the largest number."""
    if one.shape != two.shape or one.dtype.kind not in "f":
        return 0.0
    with np.errstate(all="ignore"):
        distance = np.abs(one.astype(np.float64) - two)
    size = np.nanmax(np.abs(two), initial=1e-300)
    return float(np.nanmax(distance, initial=0.0) / size)
