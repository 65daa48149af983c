"""Whether a fault changes an output, and a sound pair does not."""

import contextlib
import io
import warnings

import numpy as np

#: A fault changes an output by more than this, relative, and across frameworks
#: by more than SOUND; a sound pair by less than that, for float32 inside.
CHANGED, SOUND = 1e-9, 1e-6


@contextlib.contextmanager
def quiet():
    """Without warnings and what libraries print."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(
            io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def difference(pair):
    """How far b's outputs are from a's, as a part of the greatest of a's."""
    with quiet():
        outputs = [leaves(called(make())) for make in (pair.a, pair.b)]
    outputs[1] = [
        np.moveaxis(two, -1, 1) if one.shape != two.shape and two.ndim == 4
        else two for one, two in zip(*outputs, strict=True)]
    if [x.shape for x in outputs[0]] != [x.shape for x in outputs[1]]:
        raise ValueError(f"{pair.family}, {pair.name}: other shapes, "
                         f"{[[x.shape for x in each] for each in outputs]}")
    return max(np.abs(one - two).max() / np.abs(one).max()
               for one, two in zip(*outputs))


def called(made):
    """The output of (model, inputs, keywords), without gradients."""
    model, inputs, keywords = made
    if not hasattr(model, "named_parameters"):
        return model(*inputs, **keywords)
    import torch
    as_given = [torch.from_numpy(x) if isinstance(x, np.ndarray) else x
                for x in inputs]
    with torch.no_grad():
        return model(*as_given, **{
            name: torch.from_numpy(x) if isinstance(x, np.ndarray) else x
            for name, x in keywords.items()})


def leaves(output):
    """The float arrays of an output, in order."""
    if isinstance(output, dict):
        output = [*output.values()]
    if isinstance(output, (list, tuple)):
        return [x for each in output for x in leaves(each)]
    if output is None:
        return []
    x = np.asarray(output)
    return [x.astype(np.float64)] if x.dtype.kind == "f" else []
