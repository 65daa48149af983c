"""One step of a beam.

W hypotheses are alive, `alive` [W] are the sums of their log p so far, and
`log_probs` [W V] says how likely each token is after each. All W · V
continuations compete. Return a tuple of three arrays, [count] each, the best
continuation first:

- its score, the hypothesis' sum plus log p of the token;
- its parent, the number of the hypothesis that it continues;
- its token.

At the first step of a search all but one hypothesis have -∞. Of equals, the one
with the lower parent, then the lower token, comes first.
"""


def best(alive, log_probs, count):
    raise NotImplementedError
