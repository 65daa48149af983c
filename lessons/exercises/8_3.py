"""A gradient by differences.

`f` is a function of an array that returns a float. Return its gradient at `x`,
an array of x's shape, without knowing how f is computed:

    df/dx_i  ≈  (f(x + h e_i) - f(x - h e_i)) / (2 h)

e_i is 1 at place i and 0 elsewhere. A large h bends, a small h loses digits by
cancellation; the best lies between. One part in ten million is asked. Do not
change x itself.
"""


def numerical_gradient(f, x):
    raise NotImplementedError
