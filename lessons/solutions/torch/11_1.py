def greedy(next_log_probs, bos, eos, most):
    tokens = [bos]
    for _ in range(most):
        tokens.append(int(next_log_probs(tokens).argmax()))
        if tokens[-1] == eos:
            break
    return tokens
