"""What goes wrong with embeddings and positions."""

import numpy as np

from parity.causes.cause import BETWEEN, Cause
from parity.causes.faults.attention import root_is
from parity.causes.faults.putting import (
    after_init, configured, replaced, weights_by)
from parity.causes.formulas.family import Sized
from parity.causes.formulas.tables import ROWS, SINUSOIDS, sinusoids


def embedded_with(function):
    """The tables of tokens changed, ``function(array, config)``."""
    return weights_by(lambda name, array, config: (
        function(array, config)
        if name.endswith("table") and array.ndim == 2
        and "relative" not in name else None))


def _padding_zeroed(array, config):
    array = array.copy()
    array[config.pad_id] = 0
    return array


def _rows(step):
    """Each number's row taken from further on."""
    return embedded_with(lambda array, config: np.roll(array, -step, 0))


def positions_by(function):
    """Another table of positions: ``function(length, d_model)``."""
    return replaced(
        "positional", "position_table", lambda old, port: function)


def in_float32(length, d_model):
    """Angles in float32."""
    pair = np.arange(0, d_model, 2, dtype=np.float64)
    divisor = np.exp((-np.log(10000.0) * pair / d_model).astype(np.float32))
    angle = np.arange(length, dtype=np.float32)[:, None] * divisor
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(
        length, d_model).astype(np.float64)


EMBEDDED = {"case": "token_embedding", "step": "embedded"}
POSITIONS = {"case": "positional_encoding", "step": "positions"}


def _scaled():
    """Embeddings multiplied by another number than √d_model."""
    for word, name, sentence in (
            ("1", "embedding not scaled", "The rows as they are, without "
             "√d_model."),
            ("d", "embedding scaled by d_model", "The root is not taken."),
            ("1/√d", "embedding over √d_model", "Divided, not multiplied.")):
        yield Cause(
            name, "embedding", sentence, ("embedding", "position encoding",
                                          BETWEEN),
            {"factor": word}, {"factor": "√d"},
            put=root_is("embedding", lambda size, word=word: float(
                Sized(word, size))), factor=lambda size, word=word: Sized(
                    word, size) / size**0.5, **EMBEDDED)


def _taken():
    """Rows of another number."""
    for row, name in (("the next", "the row of the next id"),
                      ("the one before", "the row of the id before"),
                      ("the one after next", "the row of the id after next")):
        yield Cause(name, "embedding", f"table[id {ROWS[row]:+d}].",
                    ("embedding",), {"row": row}, put=_rows(ROWS[row]),
                    **EMBEDDED)


def _sinusoids():
    """Tables of sines and cosines with other settings."""
    layout, exponent, base, table, first = SINUSOIDS
    for name, sentence, settings in (
            ("positions begin at 1", "The first position is 1.", {first: 1}),
            ("positions begin at 2", "The first position is 2.", {first: 2}),
            ("positions begin at -1", "The first position is -1.",
             {first: -1}),
            ("cosine before sine", "Cosine on even features.",
             {layout: "interleaved, cosine first"}),
            ("positions in halves", "All sines, then all cosines.",
             {layout: "in halves"}),
            ("positions in halves, cosine first", "All cosines, then all "
             "sines.", {layout: "in halves, cosine first"}),
            ("positions divided by 1000^…", "The base is 1000.",
             {base: 1000.0}),
            ("positions divided by 100000^…", "The base is 100000.",
             {base: 100000.0}),
            ("each feature has a frequency of its own", "The exponent is the "
             "feature's number over d, not its pair's.", {exponent: "j/d"}),
            ("positions' exponent doubled", "2 · 2i/d, from taking i for the "
             "feature's number.", {exponent: "4i/d"}),
            ("positions as in Tensor2Tensor", "Exponents i / (d/2 - 1), all "
             "sines first.", {layout: "in halves", exponent: "i/(d/2 - 1)"}),
            ("positions' exponent as in Tensor2Tensor", "i / (d/2 - 1).",
             {exponent: "i/(d/2 - 1)"}),
            ("positions rounded to float32", "Computed in float64, and "
             "rounded.", {table: "rounded to float32"}),
            ("positions rounded to bfloat16", "Computed in float64, and "
             "rounded.", {table: "rounded to bfloat16"})):
        yield Cause(name, "positions", sentence, ("position encoding",
                                                  BETWEEN), settings,
                    put=positions_by(
                        lambda length, size, settings=settings: sinusoids(
                            SINUSOIDS | settings, length, size)),
                    **POSITIONS)


def _row_further(positions):
    positions.first += 1


def _padding_counted(positions):
    positions.pad_id = -1


def _without_norm(old, port):
    def finish(self, x, *c):
        if not c:
            return self.dropout(x)
        dropped, c[0]["dropout"] = self.dropout.forward(x)
        return dropped, c[0]
    return finish


def _of_variants():
    """What goes wrong with positions that the paper does not have."""
    yield Cause(
        "learned positions a row further", "positions", "The table's row t + 1 "
        "for the token at t.", put=after_init(
            "dialects.positional", "LearnedPositions", _row_further),
        changes={"positions": "learned"}, not_explained="it is told as "
        "positions that begin at 1", **POSITIONS)
    yield Cause(
        "padding counts as a position", "positions", "Tokens are counted from "
        "the left edge, padding among them.", put=after_init(
            "dialects.positional", "DialectPositions", _padding_counted),
        changes={"position_padding": True}, not_explained="it takes the ids, "
        "which the traced module may not be given", **POSITIONS)
    yield Cause(
        "embeddings not normalised", "embedding", "The norm of the sum of "
        "embeddings and positions is left out.", put=replaced(
            "dialects.positional", "DialectPositions.finish", _without_norm),
        changes={"embedding_norm": True}, not_explained="a norm that one model "
        "lacks is a step without a partner", case="positional_encoding",
        step="norm.mean")


CAUSES = (
    *_scaled(), *_taken(),
    Cause("embedding scaled by √d_model", "embedding", "The rows times "
          "√d_model, in a model that takes them as they are.",
          ("embedding", "position encoding", BETWEEN),
          {"factor": "√d"}, {"factor": "1"}, put=configured(
              embedding_scale="root"),
          factor=lambda size: size**0.5,
          changes={"embedding_scale": "none"}, **EMBEDDED),
    Cause("padding's embedding is zero", "embedding", "As torch's padding_idx "
          "makes it.", ("embedding", BETWEEN), {"padding": "zero"},
          put=embedded_with(_padding_zeroed), **EMBEDDED),
    *_sinusoids(), *_of_variants(),
    Cause("positions computed in float32", "positions", "Angles are numbers "
          "of float32.", put=positions_by(in_float32),
          not_explained="each framework's float32 sine rounds in its own way",
          **POSITIONS),
    Cause("no positions", "positions", "Nothing is added.",
          ("position encoding",), {"positions": "left out"},
          put=positions_by(lambda length, size: np.zeros((length, size))),
          **POSITIONS),
)
