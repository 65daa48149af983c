"""Adam with one pass over memory for all that a weight has."""

import torch
from torch.optim import adam, adamw

#: torch's own, as functions.
OPTIMIZERS = {"adam": adam.adam, "adamw": adamw.adamw}


def clip_by_global_norm(gradients, limit):
    """Scale all gradients in place; their norm before. See the readable one."""
    norm = torch.nn.utils.get_total_norm(gradients, foreach=True)
    if limit and norm > limit:
        torch._foreach_mul_(gradients, limit / norm)
    return norm


@torch.no_grad()
def update(weights, gradients, m, v, step, learning_rate, training):
    """One step of all weights, in place."""
    steps = [torch.tensor(step - 1.0, device=weight.device)
             for weight in weights]
    OPTIMIZERS[training.optimizer](
        weights, gradients, m, v, [], steps, fused=True, amsgrad=False,
        beta1=training.beta1, beta2=training.beta2, lr=learning_rate,
        weight_decay=training.weight_decay, eps=training.eps, maximize=False)
