"""Find the leak.

A decoder must not see what it is to predict: what it computes at a place may
depend on the tokens up to that place, and on none that come later. A mask that
is off by one place breaks this, and the training loss falls wonderfully.

`run` is a model: run(tokens) takes an array of ids [T] and returns an array
[T D], a row for each place. `tokens` is such an array; ids may be changed to
any from 0 to 19. Return the first place, counted from 0, whose row depends on
a later token, or -1 if there is none. Two rows are the same if no number of
one differs from the other's by more than 1e-9.
"""


def first_leak(run, tokens):
    raise NotImplementedError
