"""Rows that may be sinusoids: which settings give them, and how few are asked.
"""

import numpy as np
import pytest

from parity.causes import fit
from parity.causes.formulas import tables

LIMIT = 1e-9


def test_sinusoids_are_known_by_their_settings():
    values = fit.sinusoid_values()
    settings = {name: each[0] for name, each in values.items()}
    rows = tables.sinusoids(settings, 12, 16)
    assert tables.sinusoid_settings(rows, LIMIT, values) == settings
    rows[7, 3] += 1e-6  # a later row counts as much as the first
    assert tables.sinusoid_settings(rows, LIMIT, values) is None


@pytest.mark.parametrize("largest, lengths", [(2.0, set()), (0.5, {2})])
def test_other_values_are_held_against_few_rows(
        monkeypatch, largest, lengths):
    """A model of one text has thousands of them, each as large as the model.
    """
    made, asked = tables.sinusoids, set()

    def seen(settings, length, size):
        asked.add(length)
        return made(settings, length, size)

    monkeypatch.setattr(tables, "sinusoids", seen)
    rows = np.full((12, 16), largest)
    assert tables.sinusoid_settings(rows, LIMIT, fit.sinusoid_values()) is None
    assert asked == lengths
