"""Which causes a difference is, where both speak of the same thing.

The names are those of parity.causes, which says there what each computes.
"""

#: Row of the registry -> names of causes.
CAUSES = {
    "layer_norm_epsilon": (
        "layer norm's ε is 0.001", "layer norm's ε is 1e-05",
        "layer norm's ε is 1e-06", "layer norm's ε is 1e-07"),
    "layer_norm_on_narrow_rows": ("layer norm's ε is 0.001",),
    "layer_norm_variance": ("layer norm's variance unbiased",),
    "std_of_four": ("deviation norm's deviation biased",),
    "fast_variance": ("layer norm's variance as mean(x²) - mean(x)²",),
    "epsilon_place": ("layer norm's ε outside the root",),
    "final_norm": ("no final norm", "a norm more"),
    "norm_over_positions": ("a norm over positions too",),
    "gelu_form": ("gelu by tanh, not exact",),
    "mask_polarity": ("mask's polarity turned round in attention",),
    "mask_constant": (
        "a query that sees nothing keeps its scores' order",),
    "query_without_keys": (
        "a query that sees nothing spreads its weight evenly",
        "a hidden score is -∞, and rows of NaN are set to 0"),
    "dense_kernel": ("a kernel transposed",),
    "head_columns": ("all heads grouped by feature",),
    "position_divisor": ("positions' exponent as in Tensor2Tensor",),
    "position_layout": ("positions in halves",),
    "position_table_in_float32": ("positions computed in float32",),
    "padding_row": ("padding's embedding is zero",),
    "dropout_unless_told": ("dropout left on",),
    "dropout_by_default": ("dropout left on",),
    "label_smoothing": ("label smoothing by others, not uniform",
                        "label smoothing by kl, not uniform"),
    "mean_over_padding": ("loss over padding", "loss divided by all places"),
    "mean_of_means": ("loss averaged row by row",),
    "logits_or_probabilities": ("log-probabilities, not logits",),
    "adam_epsilon": ("Adam's ε is 1e-8",),
    "adam_epsilon_place": (
        "Adam's ε before the correction, as Keras has it",),
    "weight_decay_kind": ("weight decay added to the gradient",),
    "norm_after_clipping": (
        "clipping adds 1e-6 to the norm, as torch does",),
    "clipping_scope": ("each weight clipped by its own norm",),
    "first_step_of_a_schedule": ("schedule one step ahead",),
    "live_beams_at_first": ("one hypothesis stands twice",),
}


def in_words(row):
    """The causes of a row of the registry in a sentence; "" for none."""
    names = [f"“{name}”" for name in CAUSES.get(row, ())]
    return f"As a cause: {', '.join(names)}." if names else ""
