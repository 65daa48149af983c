"""Count the weights.

How many numbers does training move in the paper's model? Return it as an int,
for an encoder and a decoder of `layers` layers each, with

- two embedding tables, source and target, and an output projection with a
  bias; nothing is shared, and both vocabularies have `vocab` tokens;
- in every attention four linear maps [D D], each with a bias;
- in every feed-forward network two linear maps, to `d_ff` and back, each with
  a bias;
- in every layer a norm after each sub-layer, with a scale and a bias [D]; no
  other norms. Positions are sines and are not trained.

The number of heads does not matter. Why?
"""


def parameters(vocab, d_model, d_ff, layers):
    raise NotImplementedError
