def first_leak(run, tokens):
    before = run(tokens)
    for place in range(len(tokens)):
        changed = tokens.clone()
        changed[place + 1:] = (changed[place + 1:] + 1) % 20
        after = run(changed)
        if (after[place] - before[place]).abs().max() > 1e-9:
            return place
    return -1
