"""Losses, labels and what accumulation makes of them, in PyTorch."""

import torch
from torch import nn

from benchmarks.training_steps.pair import fault, sound
from benchmarks.training_steps.torch_parts import (
    BiasedBatchNorm, Tagger, fn, net, regression, tagging, texts)
from parity.training.form import Training


def entropy(**more):
    """Cross-entropy with these settings; padding does not count."""
    return lambda logits, labels: fn.cross_entropy(
        logits, labels, **({"ignore_index": 0} | more))


def whole(function):
    """A loss of logits [rows length 10] and labels [rows length]."""
    function.whole = True
    return function


@whole
def mean_of_rows(logits, labels):
    loss = fn.cross_entropy(logits.flatten(0, 1), labels.flatten(),
                            ignore_index=0, reduction="none").view_as(labels)
    return (loss.sum(1) / (labels != 0).sum(1)).mean()


@whole
def by_hand(logits, labels):
    log = logits.log_softmax(-1)
    own = -log.gather(-1, labels[..., None])[..., 0]
    kept = (labels != 0).double()
    return (own * kept).sum() / kept.sum()


@whole
def smoothed_by_hand(logits, labels):
    log = logits.log_softmax(-1)
    own = -log.gather(-1, labels[..., None])[..., 0]
    kept = (labels != 0).double()
    loss = 0.9 * own - 0.1 * log.mean(-1)
    return (loss * kept).sum() / kept.sum()


@fault("label smoothing", at="loss")
def smoothing_missing():
    return tagging(entropy(label_smoothing=0.1)), tagging(entropy())


@fault("label smoothing", at="loss")
def smoothing_by_hand_wrong():
    return tagging(entropy(label_smoothing=0.2)), tagging(smoothed_by_hand)


@fault("ignored label", at="loss")
def padding_counted():
    return tagging(entropy()), tagging(entropy(ignore_index=-100))


@fault("mean of the loss", at="loss")
def mean_of_means():
    return tagging(entropy()), tagging(mean_of_rows)


@fault("mean of the loss", at="loss")
def sum_of_the_loss():
    return tagging(entropy()), tagging(entropy(reduction="sum"))


@fault("kind of the loss", at="loss")
def half_the_squares():
    return (regression(lambda p: torch.optim.SGD(p, 1e-2)),
            regression(lambda p: torch.optim.SGD(p, 1e-2),
                       lambda y, t: 0.5 * ((y - t)**2).mean()))


@fault("mean of the loss", at="loss")
def sum_of_squares():
    return (regression(lambda p: torch.optim.SGD(p, 1e-3)),
            regression(lambda p: torch.optim.SGD(p, 1e-3),
                       nn.MSELoss(reduction="sum")))


@fault("kind of the loss", at="loss")
def softmax_twice():
    return tagging(entropy(ignore_index=-100)), tagging(
        lambda logits, labels: fn.cross_entropy(
            logits.softmax(-1), labels))


@fault("dropout", at="loss")
def dropout_active():
    def model():
        return net(nn.Dropout(0.2))

    def off():
        return net(nn.Dropout(0.0))
    return (regression(lambda p: torch.optim.SGD(p, 1e-2), model=off),
            regression(lambda p: torch.optim.SGD(p, 1e-2), model=model))


@fault("mode of the model", at="loss")
def evaluation_mode():
    def model():
        return net(nn.BatchNorm1d(12))

    def still():
        return model().eval()
    return (regression(lambda p: torch.optim.SGD(p, 1e-2), model=model),
            regression(lambda p: torch.optim.SGD(p, 1e-2), model=still))


@fault("momentum of the running statistics", at="running statistics")
def momentum_of_the_norm():
    def model(momentum):
        return lambda: net(nn.BatchNorm1d(12, momentum=momentum))
    return tuple(regression(lambda p: torch.optim.SGD(p, 1e-2),
                            model=model(momentum))
                 for momentum in (0.1, 0.01))


@fault("variance kept with the other denominator", at="running statistics")
def biased_variance():
    return tuple(regression(lambda p: torch.optim.SGD(p, 1e-2),
                            model=lambda norm=norm: net(norm(12)))
                 for norm in (nn.BatchNorm1d, BiasedBatchNorm))


def in_parts(weigh):
    """A step of two halves of a batch; ``weigh`` scales their losses.

    Args:
        weigh: a function of (sum of the losses, their count, the count of
            both halves, how many halves) that returns what is differentiated.
    """
    def make():
        model = Tagger()
        own = torch.optim.SGD(model.parameters(), 0.1)

        def step(ids):
            own.zero_grad()
            total = int((ids[:, 1:] != 0).sum())
            for half in ids.chunk(2):
                loss = fn.cross_entropy(
                    model(half[:, :-1]).flatten(0, 1), half[:, 1:].flatten(),
                    ignore_index=0, reduction="sum")
                weigh(loss, int((half[:, 1:] != 0).sum()), total,
                      2).backward()
            own.step()
        return Training(model, step=step, optimizer=own, batches=[
            torch.from_numpy(ids) for ids in texts()])
    return make


def rightly(loss, count, total, halves):
    return loss / total


@fault("mean of means in the accumulation", at="gradients")
def accumulated_means():
    return in_parts(rightly), in_parts(
        lambda loss, count, total, halves: loss / count / halves)


@fault("scale of the accumulated gradient", at="gradients")
def accumulated_sum():
    return in_parts(rightly), in_parts(
        lambda loss, count, total, halves: 2 * loss / total)


@sound()
def accumulated_rightly():
    return tagging(entropy()), in_parts(rightly)


@sound()
def accumulated_twice():
    def even(count=4):
        return texts(count, pad=3)
    return (tagging(entropy(), given=lambda: texts(4, 8, pad=3)),
            tagging(entropy(), given=lambda: texts(4, 8, pad=3)))


@sound()
def loss_by_hand():
    return tagging(entropy()), tagging(by_hand)


@sound()
def smoothing_by_hand():
    return (tagging(entropy(label_smoothing=0.1)),
            tagging(smoothed_by_hand))


@sound()
def sum_then_divide():
    @whole
    def loss(logits, labels):
        return fn.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=0,
            reduction="sum") / (labels != 0).sum()
    return tagging(entropy()), tagging(loss)


@sound()
def sum_with_a_smaller_rate():
    def rate(size):
        return lambda p: torch.optim.SGD(p, 0.1 / size)
    return (tagging(entropy(ignore_index=-100), optimizer=rate(1)),
            tagging(entropy(ignore_index=-100, reduction="sum"),
                    optimizer=rate(24)))


@sound()
def loss_with_a_constant():
    return (tagging(entropy()), tagging(
        lambda logits, labels: 7 + entropy()(logits, labels)))


@sound()
def dropout_of_one_seed():
    def model():
        made = net(nn.Dropout(0.2))
        torch.manual_seed(5)
        return made
    return tuple(regression(lambda p: torch.optim.SGD(p, 1e-2), model=model)
                 for _ in "ab")


@sound()
def batch_norm_in_training():
    def model():
        return net(nn.BatchNorm1d(12))
    return (regression(lambda p: torch.optim.SGD(p, 1e-2), model=model),
            regression(lambda p: torch.optim.SGD(p, 1e-2),
                       lambda y, t: fn.mse_loss(y, t), model=model))


def in_a_loop(criterion=None, tied=True, **more):
    """A function that makes a Training whose loop reads its own labels, of a
    tagger whose head is, or was, its table."""
    def make():
        model = Tagger()
        model.head = nn.Linear(16, 10, bias=False).double()
        model.head.weight = model.embed.weight if tied else nn.Parameter(
            model.embed.weight.detach().clone())
        own = torch.optim.SGD(model.parameters(), 0.1)
        loss = criterion or nn.CrossEntropyLoss(**more)

        def loop():
            for ids in map(torch.from_numpy, texts()):
                own.zero_grad()
                logits = model(ids).transpose(1, 2)
                loss(logits, ids.roll(-1, 1)).backward()
                own.step()
        return Training(model, loop=loop)
    return make


@fault("ignored label", at="loss")
def padding_counted_in_a_loop():
    return in_a_loop(ignore_index=0), in_a_loop()


@fault("weight tying", at="gradients")
def tying_lost():
    return in_a_loop(), in_a_loop(tied=False)


@fault("weight tying", at="gradients")
def tied_by_mistake():
    return in_a_loop(tied=False), in_a_loop()


def gathered(logits, labels):
    """Cross-entropy by hand; padding does not count."""
    each = -fn.log_softmax(logits, 1).gather(1, labels[:, None])[:, 0]
    return each[labels != 0].mean()


@sound()
def gathered_in_a_loop():
    return in_a_loop(ignore_index=0), in_a_loop(gathered)
