"""The loss and its gradients, without a second array of B·T·V scores.

The gradient by the logits takes their place, some rows at a time that stay in
the cache. The projection's gradients are made here too, for autograd would
keep the logits for them.
"""

import torch

from transformer_contract.smoothing import SMOOTHINGS
from impl_torch.fast.linear import product

#: Scores that are worked on at once.
BLOCK = 2**19

#: Scores that are held at once: 256 MB in float32.
MOST = 2**26


def kernel_and_bias(projection):
    """What a projection multiplies by, [V D], and its bias [V] or None."""
    kernel = (projection.embedding.table.weight
              if hasattr(projection, "embedding") else projection.weight)
    return kernel, getattr(projection, "bias", None)


def cross_entropy(logits, labels, count, config):
    """The summed loss of logits [N V] over ``count``; see impl_torch.loss.

    Its gradient takes the logits' place.
    """
    right, other, padding, negative_entropy = SMOOTHINGS[config.smoothing](
        config.label_smoothing, logits.shape[-1])
    kept, row = labels != config.pad_id, torch.arange(len(labels))
    logits -= logits.amax(dim=-1, keepdim=True)
    at_label, at_pad = logits[row, labels], logits[:, config.pad_id].clone()
    q_logits = (right - other) * at_label + (padding - other) * at_pad
    if other:
        q_logits += other * logits.sum(dim=-1)
    total = logits.exp_().sum(dim=-1)
    losses = negative_entropy + torch.log(total) - q_logits
    share = kept.to(logits.dtype) / count
    logits *= (share / total)[:, None]
    if other:
        logits -= (other * share)[:, None]
    logits[:, config.pad_id] -= (padding - other) * share
    logits[row, labels] -= (right - other) * share
    return torch.sum(torch.where(kept, losses, 0)) / count


@torch.no_grad()
def loss_and_gradients(projection, x, labels, config):
    """The loss of x [N D] by its projection, and its gradients.

    Args:
        labels: int [N].

    Returns:
        The loss, and its gradients by x, the kernel and the bias, if there is
        one.
    """
    kernel, bias = kernel_and_bias(projection)
    count = torch.clamp(torch.sum(labels != config.pad_id), min=1).to(x.dtype)
    loss, dx, dkernel = 0, torch.empty_like(x), None
    dbias = None if bias is None else torch.zeros_like(bias)
    rows = max(BLOCK // len(kernel), 1)
    for some in torch.arange(len(x)).split(max(MOST // len(kernel), 1)):
        some = slice(int(some[0]), int(some[-1]) + 1)
        logits = product(x[some], kernel, bias)
        for these, those in zip(
                logits.split(rows), labels[some].split(rows)):
            loss += cross_entropy(these, those, count, config)
        torch.mm(logits, kernel, out=dx[some])
        dkernel = (logits.mT @ x[some] if dkernel is None
                   else dkernel.addmm_(logits.mT, x[some]))
        if bias is not None:
            dbias += logits.sum(dim=0)
    return loss, dx, dkernel, dbias
