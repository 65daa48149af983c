"""The feed-forward network, its ReLU in place."""

import torch

from transformer_contract.trace import tap
from impl_torch import feed_forward


class FeedForward(feed_forward.FeedForward):
    """See impl_torch.feed_forward."""

    def hidden(self, x):
        """What is between the two maps, [B T F]."""
        return tap(self, "activated", torch.relu_(self.inner(x)))
