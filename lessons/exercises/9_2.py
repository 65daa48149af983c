"""The learning rate of the paper.

Equation 3: the rate rises in a line for `warmup` steps, and then falls with the
root of the step. Steps count from 1.

    d_model^-½ · min(step^-½, step · warmup^-1.5)

Return it as a float. At which step is it highest, and how high is it there?
"""


def learning_rate(step, d_model, warmup):
    raise NotImplementedError
