"""Edits that change nothing because Keras or NumPy sees to it itself."""

from parity import ports
from parity.mutation import keras_proofs, proofs
from parity.mutation.entries import ANY, KERAS, entries

HOUSEKEEPING = (
    *entries(
        KERAS, "dropout.py", "Keras warns of masks of its own kind, which no "
        "layer here makes.", keras_proofs.no_masks_of_keras,
        ("self.supports_masking = True  # keras: else it warns", ANY)),
    *entries(
        KERAS, "attention.py", "A layer's name is no name of a weight.",
        keras_proofs.names_of_keras_are_not_ours,
        ('name="attention_output", **self._get_common_kwargs_for_sublayer())',
         '"attention_output" → "attention_output_"')),
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
        KERAS, "engine.py", "A first call makes the weights, whatever it is "
        "given; then all are loaded.", proofs.every_weight_is_loaded,
        ('ids = ops.zeros((1, 1), "int32")', "1 → 0 at 20", "1 → 2 at 20"),
        ('others = {"start": 0, "cache": None, "caches": None}',
         "0 → -1", "0 → 1")),
    *entries(
        KERAS, "engine.py", "What is reshaped is contiguous.",
        keras_proofs.reshaped_is_contiguous,
        ("return {name: np.ascontiguousarray(convert("
         "to_numpy(variable.value)))",
         "np.ascontiguousarray(convert(to_numpy(variable.value))) → "
         "convert(to_numpy(variable.value))")),
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
        KERAS, "projection.py", "Keras takes the width from what comes in.",
        keras_proofs.width_of_what_comes_in,
        ("config.d_model, config.target_vocab)", "d_model → d_ff")),
    *entries(
        KERAS, "__init__.py", "It only hides what is printed meanwhile.",
        keras_proofs.hides_what_is_printed,
        ("os.dup2(nowhere, 2)", "nowhere, 2 → 2, nowhere")),
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
