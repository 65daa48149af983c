"""Which test holds what stands in a row."""

#: Which test holds a row, by kind, owner or file; the first that fits.
TEST_OF = {
    ("step", "Adam"): "test_optimizer.py::test_against_mpmath",
    ("step", "AdamW"): "test_optimizer.py::test_against_mpmath",
    ("step", ""): "test_forward.py::test_every_step_is_the_references",
    ("backward", "SingleHeadAttention"):
        "test_gradients.py::test_single_head_attention",
    ("backward", ""): "test_gradients.py::test_ports_against_the_reference",
    ("plain", "padding_mask"): "test_reference.py::test_padding_mask",
    ("plain", "causal_mask"): "test_reference.py::test_causal_mask",
    ("plain", "decoder_mask"): "test_reference.py::test_decoder_mask",
    ("plain", "cross_entropy"):
        "test_reference.py::test_cross_entropy_against_mpmath",
    ("plain", "cross_entropy_backward"):
        "test_gradients.py::test_loss_by_logits",
    ("plain", "softmax"): "test_reference.py::test_softmax_against_mpmath",
    ("plain", "masked_softmax"):
        "test_reference.py::test_masked_softmax_against_mpmath",
    ("plain", "clip_by_global_norm"): "test_optimizer.py::test_clipping",
    ("plain", "inverse_sqrt"): "test_optimizer.py::test_inverse_square_root",
    ("plain", "loss_and_gradients"):
        "test_training.py::test_a_hundred_steps_are_the_same",
    ("plain", "draw"):
        "test_dropout.py::test_masks_are_bit_equal_in_every_port",
    ("", ""): "test_layout.py::test_same_names_and_signatures",
}

#: The tests of what one of the four has for itself, by file.
OWN = {"search": "test_generate.py", "sample": "test_generate.py",
       "train": "test_training.py",
       "random": "test_random.py", "parameters": "test_weights.py",
       "cache": "test_generate.py", "dropout": "test_dropout.py"}


def test_for(name, row):
    """The test that holds a row of a file."""
    for key in ((row.kind, row.owner), (row.kind, row.name), (row.kind, "")):
        if key in TEST_OF:
            return TEST_OF[key]
    if "backward" in row.name.lower():
        return TEST_OF["backward", ""]
    if row.name.startswith("_") and not row.name.startswith("__"):
        return OWN.get(name, TEST_OF["step", ""])
    return TEST_OF["", ""]
