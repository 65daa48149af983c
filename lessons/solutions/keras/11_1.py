from keras import ops


def greedy(next_log_probs, bos, eos, most):
    tokens = [bos]
    for _ in range(most):
        tokens.append(int(ops.argmax(next_log_probs(tokens))))
        if tokens[-1] == eos:
            break
    return tokens
