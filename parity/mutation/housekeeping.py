"""Edits that change nothing because Keras or NumPy sees to it itself."""

from parity.mutation import keras_proofs
from parity.mutation.entries import KERAS, entries

HOUSEKEEPING = (
    *entries(
        KERAS, "layer_norm.py", "A variable's name is no name of a weight, "
        "and first values are never read: all are loaded.",
        keras_proofs.names_of_keras_are_not_ours,
        ('self.scale = self.add_weight((d_model,), "ones", name="scale")',
         '"scale" → "bias"', ', name="scale" → ', '"ones" → "zeros"'),
        ('self.bias = self.add_weight((d_model,), "zeros", name="bias")',
         '"bias" → "weight"', '"zeros" → "ones"')),
    *entries(
        KERAS, "projection.py", "A variable's name is no name of a weight.",
        keras_proofs.names_of_keras_are_not_ours,
        ('(embedding.table.input_dim,), "zeros", name="bias")',
         '"bias" → "weight"')),
    *entries(
        KERAS, "engine.py", "A warning is told, or not; no number changes.",
        keras_proofs.a_warning_changes_nothing,
        ('warnings.filterwarnings("ignore", "You are using a softmax over '
         'axis")', 'warnings.filterwarnings("ignore", "You are using a '
         'softmax over axis") → pass', '"You are using a softmax over axis" '
         '→ "You are using a softmax over axis_"')),
    *entries(
        KERAS, "engine.py", "Keras makes a tensor of an array where it takes "
        "one, of the same dtype.", keras_proofs.arrays_for_tensors,
        ("return ops.convert_to_tensor(value, value.dtype.name)",
         "ops.convert_to_tensor(value, value.dtype.name) → value")),
    *entries(
        KERAS, "parameters.py", "NumPy takes any negative length for the one "
        "to be found.", keras_proofs.any_negative_length,
        ("return array.reshape(len(array), -1)", "-1 → -2"),
        ("return array.reshape(-1, array.shape[-1])", "-1 → -2 at 21")),
    *entries(
        KERAS, "random.py", "A power of two is exact in float32, and the "
        "wider dtype is that of the product.",
        keras_proofs.powers_of_two,
        ('unit = ops.cast(fraction, "float64") * np.float64(2.0**-52)',
         "float64 → float32 at 42")),
    *entries(
        KERAS, "random.py", "Keras makes the same whole number of it, "
        "and bits are joined either way round.",
        keras_proofs.whole_numbers_of_keras,
        ('return ops.bitwise_and(ops.cast(x, "int64"), '
         "np.int64(0xFFFFFFFF))",
         'ops.cast(x, "int64"), np.int64(0xFFFFFFFF) → '
         'np.int64(0xFFFFFFFF), ops.cast(x, "int64")'),
        ("x1 = ops.bitwise_or(ops.left_shift(x1, np.int32(turn)), low)",
         "ops.left_shift(x1, np.int32(turn)), low → "
         "low, ops.left_shift(x1, np.int32(turn))"),
        ("x1 = x1 + k[(block + 2) % 3] + np.int32(block + 1)",
         "np.int32(block + 1) → (block + 1)"),
        ('parent, ops.zeros((), "int32"), ops.convert_to_tensor(word)))',
         "ops.convert_to_tensor(word) → word"),
        ("x1 = ops.convert_to_tensor(np.array(",
         "np.array( [_signed(zlib.crc32(name.encode())) for name in names], "
         "np.int32) → [_signed(zlib.crc32(name.encode())) for name in "
         "names]"),
        ("ops.left_shift(_unsigned(x0), np.int64(32)), _unsigned(x1))",
         "int64 → int32 at 33")),
)
