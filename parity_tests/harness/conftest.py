"""What several tests of the harness are given."""

import pytest

from parity_tests.support.engines import usable


@pytest.fixture
def torch():
    """PyTorch, its random numbers seeded; a skip where it is missing."""
    usable("torch")
    import torch
    torch.manual_seed(0)
    return torch
