"""Where two models diverge.

`ours` and `theirs` are dicts of the steps of two models, name -> array, in the
order in which they were computed; names and shapes are the same. Return the
name of the *first* step that differs, or "" if none does. A step differs if

    ‖theirs - ours‖ / ‖ours‖  >  1e-12

with the L2 norm of the flattened array. The first counts, not the worst: later
steps inherit what an earlier one did.
"""


def first_difference(ours, theirs):
    raise NotImplementedError
