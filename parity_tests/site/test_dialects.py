"""The pages of dialects: what a port must not take from the paper."""

import pytest

from transformer_contract.dialects.table import SYSTEMS
from parity.reading import dialects
from parity.render.dialects import PAPER, fields


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_field_that_is_not_the_papers_has_a_row(name):
    config = dialects.configured(SYSTEMS[name])
    rows = dialects.parted(config)
    assert {row[0] for row in rows} == fields(config).keys() - {"stacks"}
    for field, paper, here, far, _ in rows:
        assert (paper, here) == (
            getattr(PAPER, field), getattr(config, field)), field
        assert far or field == "tied", field


def test_how_far_a_port_is_off_is_told():
    """A field that moves nothing is told so, and one that does is seen."""
    far = {row[0]: row[3] for name in ("whisper", "t5", "hf_marian")
           for row in dialects.parted(dialects.configured(SYSTEMS[name]))}
    assert float(far["attention_scale"]) > 0.1
    assert 1e-9 < float(far["position_rounding"]) < 1e-7
    whisper = {row[0]: row[3] for row in dialects.parted(
        dialects.configured(SYSTEMS["whisper"]))}
    # A bias of the key adds one number to a query's every score, which its
    # softmax does not see.
    assert float(whisper["attention_bias"]) < 1e-14


def test_the_tables_of_marian_and_its_port_drift_apart():
    far = [dialects.farthest(length) for length in (1, 25, 100, 512)]
    assert far[0] == 0 and far == sorted(far)
    assert [round(value, 2) for value in far[1:]] == [0.03, 0.14, 0.71]
