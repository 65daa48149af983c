"""Dates as people write them and by ISO 8601: what the examples train on."""

import calendar
import datetime
import itertools

import numpy as np

from transformer_contract.config import TransformerConfig

#: The ids of padding, of a target's begin and of its end; then signs.
PAD, BEGIN, END = 0, 1, 2
SIGNS = " -,./0123456789" + "".join(sorted(
    set("".join(calendar.month_name))))

#: Lengths of sources and targets: "September 20, 2026", and with both ends.
SOURCE, TARGET = 18, 12

CONFIG = TransformerConfig(
    source_vocab=3 + len(SIGNS), target_vocab=3 + len(SIGNS), d_model=64,
    n_heads=4, d_ff=256, n_encoder_layers=2, n_decoder_layers=2, max_length=32,
    label_smoothing=0.0)

TEXTS = "20 November 2026", "June 6, 1944", "9.11.1989"


def pairs(count, seed=0):
    """Random dates of 200 years: ids [N S] and [N T]."""
    draw = np.random.default_rng(seed)
    sources, targets = [], []
    for form, day in zip(draw.integers(3, size=count),
                         draw.integers(73_049, size=count)):
        date = datetime.date(1900, 1, 1) + datetime.timedelta(days=int(day))
        month = calendar.month_name[date.month]
        sources.append((f"{date.day} {month} {date.year}",
                        f"{month} {date.day}, {date.year}",
                        f"{date.day}.{date.month}.{date.year}")[form])
        targets.append(date.isoformat())
    return ids(sources, SOURCE), ids(targets, TARGET, ends=True)


def batches(count, rows):
    """So many batches of pairs: ids [B S] and [B T]."""
    return zip(*(part.reshape(count, rows, -1)
                 for part in pairs(count * rows)))


def ids(texts, length, ends=False):
    """Texts as ids [N T], padded at the end."""
    rows = np.full((len(texts), length), PAD, np.int32)
    for row, text in zip(rows, texts):
        found = [3 + SIGNS.index(sign) for sign in text]
        found = [BEGIN, *found, END] if ends else found
        row[:len(found)] = found
    return rows


def texts(rows):
    """The texts of targets [N T], each up to its end."""
    return ["".join(SIGNS[i - 3] for i in itertools.takewhile(
        lambda i: i != END, row) if i > END)
        for row in np.asarray(rows).tolist()]


def asked():
    """TEXTS as ids [3 S]."""
    return ids(TEXTS, SOURCE)
