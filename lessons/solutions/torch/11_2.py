import torch


def best(alive, log_probs, count):
    candidates = (alive[:, None] + log_probs).flatten()
    places = torch.sort(-candidates, stable=True).indices[:count]
    vocab = log_probs.shape[1]
    return candidates[places], places // vocab, places % vocab
