"""A row of a mirrored file as its page shows it: why, code, numbers, picture.
"""

from markupsafe import Markup

from parity.reading import formulas, listing, rulings, sources
from parity.reading.shipped_model import OTHERS
from parity.render import maps, pictures, worded

#: The sub-layer of keras.layers.MultiHeadAttention behind each step.
INSIDE_KERAS = {
    "query": "its sub-layer query_dense", "key": "its sub-layer key_dense",
    "value": "its sub-layer value_dense",
    "output": "its sub-layer output_dense",
    "scores": "its own product of query and key",
    "weights": "its own masked softmax",
    "context": "its own product of weights and value",
}


class RowViews:
    """What the rows of the mirrored files show.

    Args:
        values: a values.Values.
        root: the folder of the four.
    """

    def __init__(self, values, root=sources.ROOT):
        self.values, self.root = values, root

    def row(self, name, row):
        """A PageRow as the template takes it."""
        cells = {}
        forced: list = []
        for column in sources.columns():
            cells[column] = self.cell(name, row, column)
        view = {
            "row": row, "cells": cells, "forced": forced, "formula": "",
            "why": "", "held": [test_for(name, row)], "seen": [],
            "everywhere": [], "dims": "", "sizes": "", "place": "",
            "note": ""}
        if row.kind == "step":
            self._step(view, row)
        elif row.kind == "backward":
            self._backward(view, row)
        else:
            view["seen"] = [
                self.shown(one, one.label) for one in
                self.values.functions.get((name, row.name), ()) if one]
        return view

    def _step(self, view, row):
        step = row.step
        view["formula"] = formulas.formula(step)
        view["why"] = formulas.reason(step)
        for number in step.rulings:
            view["held"] += [test for test in rulings.tests(number)
                             if test not in view["held"]]
        seen = self.values.step(step)
        view["dims"] = " ".join(step.dims)
        if seen is None:
            return
        view["seen"] = [self.shown(seen, "")]
        view["place"] = seen.name
        view["sizes"] = " × ".join(map(str, seen.array.shape))
        view["note"] = self.where(step.owner)
        view["everywhere"] = [
            {"name": one.name,
             "shape": " × ".join(map(str, one.array.shape)),
             "summary": pictures.Summary.of(one.array),
             "differences": one.differences}
            for one in self.values.everywhere(step)]

    def _backward(self, view, row):
        step = row.step
        view["formula"] = formulas.formula(step)
        owner = step.owner.removesuffix("_backward")
        seen = [(name, one) for name, one in self.values.backward(step)]
        view["seen"] = [self.shown(one, f"∂{name}", small=i > 0)
                        for i, (name, one) in enumerate(
                            (n, o) for n, o in seen if o is not None)]
        if view["seen"]:
            return
        place = self.values.place(owner)
        forward = sources.forward_name(self.root, owner, step.number)
        if place and forward:
            run, path = place
            name = f"{path}.{forward}" if path else forward
            one = run.gradient(name)
            if one is not None:
                view["seen"] = [self.shown(
                    one, f"∂{forward}, what arrives here")]

    def where(self, owner):
        """A sentence on what the values of an owner come from."""
        if owner == "SingleHeadAttention":
            return ("One head of the model's width, on the sentence's first "
                    "vectors and the first layer's kernels.")
        if owner in ("Adam", "AdamW"):
            return ("One bias of the model, moved by the gradients of two "
                    "dates, one after the other.")
        place = self.values.place(owner)
        if place and place[0] in self.values.others:
            number = self.values.others.index(place[0])
            words = OTHERS[number][1] + (
                ", one layer a stack" if number else "")
            return ("The shipped model has no use for this: its weights are "
                    f"read as those of {words}.")
        return ""

    def cell(self, name, row, column):
        """The code of a PageRow in one column."""
        piece = row.pieces.get(column)
        if piece is None:
            return {"code": "", "forced": (), "note": self.absent(row, column)}
        file = sources.source(column, name, self.root)
        code, forced = listing.listing(file, piece.ranges)
        note = ""
        if column == "keras" and row.kind == "step" and (
                row.owner == "MultiHeadAttention"):
            note = ("Inside keras.layers.MultiHeadAttention: "
                    f"{INSIDE_KERAS[row.name]}.")
        elif piece.note == "inside":
            note = ("In the model this happens inside "
                    f"keras.layers.MultiHeadAttention: "
                    f"{INSIDE_KERAS[row.name]}. The lines above the dots only "
                    "look at it; below, the step written out.")
        return {"code": code, "forced": forced, "note": note}

    def absent(self, row, column):
        """What stands where a column has no code."""
        if row.kind == "backward" or "backward" in row.name:
            return "autodiff"
        return f"{sources.title(column)} needs none"

    def shown(self, seen, label, small=False):
        """A SeenArray as the template takes it."""
        summary = pictures.Summary.of(seen.array)
        shape = " × ".join(map(str, seen.array.shape)) or "one number"
        words = (f"{seen.name}, {shape}: mean {summary.mean}, spread "
                 f"{summary.spread}, from {summary.low} to {summary.high}"
                 + (summary.apart and f"; {summary.apart}"))
        few = pictures.few(seen.array)
        picture = "" if few or small else self.picture(seen, words)
        return {
            "name": seen.name, "label": label, "shape": shape,
            "summary": summary, "few": few,
            "numbers": pictures.numbers(seen.array) if few else (),
            "map": picture or "", "ports": {
                column: seen.differences.get(column)
                for column in seen.theirs}}

    def picture(self, seen, words):
        """An array as a map, with the words of the sentence at its edges.

        Of several heads the first is shown so; of what has no word for each
        row, all is, without them.
        """
        array = seen.array
        while array.ndim > 3 or (array.ndim == 3 and len(array) == 1):
            array = array[0]
        matrix = array[0] if array.ndim == 3 else array
        rows = self.words_of(seen.name, len(matrix))
        if matrix.ndim < 2 or not rows:
            return pictures.heat_map(seen.array, words)
        columns = self.words_of(
            seen.name, matrix.shape[1], keys=True) if matrix.shape[1] < (
                self.values.config.d_model // 2) else None
        picture = worded.map_of(
            matrix, rows, columns, words, seen.name.endswith("weights"))
        if array.ndim < 3:
            return picture
        return picture + Markup(
            '<p class="quiet">Head 1 of {}.</p>').format(len(array))

    def words_of(self, name, length, keys=False):
        """The words at so many places of an array of this name, or None.

        Args:
            keys: whether what is looked at is asked for, not who looks.
        """
        batch, tokens = self.values.dates.batch, self.values.tokenizer.tokens
        sides = [batch.source[0], batch.target[0]]
        if name.startswith(("target", "decoder", "output", "projection")) and (
                not (keys and "cross_attention" in name)):
            sides.reverse()
        for ids in sides:
            if len(ids) == length:
                return [maps.shown(token) for token in tokens(ids)]
        return None


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
