"""What is compared."""

import pytest

from parity_tests.support.layers import torch_layer


@pytest.fixture
def layer():
    return torch_layer()
