"""A layer that casts to the dtype it was built with, whatever its weights are.
"""

from parity.causes.explanation import Explanation, sentence_of
from parity.numerics.comparator import DIVERGENCE
from parity.numerics.dtypes import EPS
from parity.tracing.trace import is_float

#: What to do where a layer casts: by framework.
REMEDIES = {
    "jax": "; give it dtype as well as param_dtype, nnx.Embed too",
    "keras": "; give it dtype, or set the dtype policy before it is built"}


def cast(row, a, b):
    """An Explanation of an output whose dtype b's parameters do not have.

    None where the dtypes agree, or follow from the parameters.
    """
    mine, other = (trace.step(path).outputs[name] for trace, path, name in (
        (a, row.a, row.a_name), (b, row.b, row.b_name)))
    wanted, made = mine.dtype.name, other.dtype.name
    if (row.verdict != DIVERGENCE or made == wanted
            or not (is_float(mine) and is_float(other))):
        return None
    if {b.parameters[path].dtype.name for path in b.step(row.b).parameters
            if path in b.parameters} != {wanted}:
        return None
    return Explanation(
        row.a, row.b, "dtype", wanted, made,
        sentence_of(row, "dtype", wanted, made), [
            f"Its parameters are {wanted}, and it casts to the dtype that it "
            f"was built with{REMEDIES.get(b.framework, '')}. What else may "
            "differ there shows once the dtypes agree."])


def lowered(row, a, b):
    """An Explanation of an input of lower precision than a's and b's weights.

    So is what Keras' attention on JAX makes of float64. The order of its sums
    is not known, so that nothing of it can be shown to the bit.
    """
    wanted, made = (trace.step(path).inputs[name].dtype.name
                    for trace, path, name in (
                        (a, row.a, row.a_name), (b, row.b, row.b_name)))
    if not (wanted in EPS and made in EPS and EPS[made] > EPS[wanted]) or {
            b.parameters[path].dtype.name for path in b.step(row.b).parameters
            if path in b.parameters} != {wanted}:
        return None
    return Explanation(
        row.a, row.b, "dtype", wanted, made,
        f"In the input of {row.a}, dtype: {made} in b, {wanted} in a.", [
            f"Sums in {made} are not shown to the bit. What else may differ "
            "there shows once the dtypes agree."])
