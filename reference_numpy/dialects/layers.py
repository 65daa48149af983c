"""Layers of other systems: x + f(norm(x)), and a decoder's without a source."""

from reference_numpy import parts
from reference_numpy.decoder import DecoderLayer
from reference_numpy.encoder import EncoderLayer


class PreNormEncoderLayer(EncoderLayer):
    """An encoder layer whose residual connections normalise first (R11)."""

    def forward(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        c = {}
        y, c["self_attention_residual"] = self.self_attention_residual.before(x)
        y, c["self_attention"] = self.self_attention.forward(y, y, mask, None)
        # [1] attended [B S D]: x + SelfAttention(norm(x))
        attended, after = self.self_attention_residual.forward(x, y)
        c["self_attention_residual"] |= after
        c["attended"] = attended
        y, c["feed_forward_residual"] = self.feed_forward_residual.before(
            attended)
        y, c["feed_forward"] = self.feed_forward.forward(y)
        # [2] output [B S D]: attended + FeedForward(norm(attended))
        output, after = self.feed_forward_residual.forward(attended, y)
        c["feed_forward_residual"] |= after
        c["output"] = output
        return output, c

    def backward(self, doutput, c):
        """From doutput [B S D]: dx and g."""
        g = {"output": doutput}
        # [2'] attended: output = attended + FeedForward(norm(attended))
        dattended, dy, g["feed_forward_residual"] = (
            self.feed_forward_residual.backward(
                doutput, c["feed_forward_residual"]))
        dy, g["feed_forward"] = self.feed_forward.backward(
            dy, c["feed_forward"])
        dattended = g["attended"] = (
            dattended + self.feed_forward_residual.before_backward(
                dy, c["feed_forward_residual"], g["feed_forward_residual"]))
        # [1'] x: attended = x + SelfAttention(norm(x))
        dx, dy, g["self_attention_residual"] = (
            self.self_attention_residual.backward(
                dattended, c["self_attention_residual"]))
        dy, dmemory, g["self_attention"] = self.self_attention.backward(
            dy, c["self_attention"])
        dx = dx + self.self_attention_residual.before_backward(
            dy + dmemory, c["self_attention_residual"],
            g["self_attention_residual"])
        return dx, g


class PreNormDecoderLayer(DecoderLayer):
    """A decoder layer whose residual connections normalise first (R11)."""

    def forward(self, x, memory, memory_mask, mask, cache):
        """Map x [B T D], reading memory [B S D]; masks as in the paper's."""
        c = {}
        y, c["self_attention_residual"] = self.self_attention_residual.before(x)
        y, c["self_attention"] = self.self_attention.forward(y, y, mask, cache)
        # [1] attended [B T D]: x + SelfAttention(norm(x))
        attended, after = self.self_attention_residual.forward(x, y)
        c["self_attention_residual"] |= after
        c["attended"] = attended
        y, c["cross_attention_residual"] = (
            self.cross_attention_residual.before(attended))
        y, c["cross_attention"] = self.cross_attention.forward(
            y, memory, memory_mask, None)
        # [2] informed [B T D]: attended + Attention(norm(attended), memory)
        informed, after = self.cross_attention_residual.forward(attended, y)
        c["cross_attention_residual"] |= after
        c["informed"] = informed
        y, c["feed_forward_residual"] = self.feed_forward_residual.before(
            informed)
        y, c["feed_forward"] = self.feed_forward.forward(y)
        # [3] output [B T D]: informed + FeedForward(norm(informed))
        output, after = self.feed_forward_residual.forward(informed, y)
        c["feed_forward_residual"] |= after
        c["output"] = output
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g."""
        g = {"output": doutput}
        # [3'] informed: output = informed + FeedForward(norm(informed))
        dinformed, dy, g["feed_forward_residual"] = (
            self.feed_forward_residual.backward(
                doutput, c["feed_forward_residual"]))
        dy, g["feed_forward"] = self.feed_forward.backward(
            dy, c["feed_forward"])
        dinformed = g["informed"] = (
            dinformed + self.feed_forward_residual.before_backward(
                dy, c["feed_forward_residual"], g["feed_forward_residual"]))
        # [2'] attended: informed = attended + CrossAttention(norm(…), memory)
        dattended, dy, g["cross_attention_residual"] = (
            self.cross_attention_residual.backward(
                dinformed, c["cross_attention_residual"]))
        dy, dmemory, g["cross_attention"] = self.cross_attention.backward(
            dy, c["cross_attention"])
        dattended = g["attended"] = (
            dattended + self.cross_attention_residual.before_backward(
                dy, c["cross_attention_residual"],
                g["cross_attention_residual"]))
        # [1'] x: attended = x + SelfAttention(norm(x))
        dx, dy, g["self_attention_residual"] = (
            self.self_attention_residual.backward(
                dattended, c["self_attention_residual"]))
        dy, dy_memory, g["self_attention"] = self.self_attention.backward(
            dy, c["self_attention"])
        dx = dx + self.self_attention_residual.before_backward(
            dy + dy_memory, c["self_attention_residual"],
            g["self_attention_residual"])
        return dx, dmemory, g


class CausalLayer(EncoderLayer):
    """A decoder's layer without a source: no cross-attention."""

    def __init__(self, config):
        self.self_attention = parts.attention(config, "causal")
        self.self_attention_residual = parts.residual(config)
        self.feed_forward = parts.feed_forward(config)
        self.feed_forward_residual = parts.residual(config)

    def forward(self, x, mask, cache):
        """Map x [B T D]; mask [B 1 T T] and the cache as in a decoder."""
        c = {}
        y, c["self_attention"] = self.self_attention.forward(x, x, mask, cache)
        # [1] attended [B T D]: norm(x + SelfAttention(x))
        attended, c["self_attention_residual"] = (
            self.self_attention_residual.forward(x, y))
        c["attended"] = attended
        y, c["feed_forward"] = self.feed_forward.forward(attended)
        # [2] output [B T D]: norm(attended + FeedForward(attended))
        output, c["feed_forward_residual"] = (
            self.feed_forward_residual.forward(attended, y))
        c["output"] = output
        return output, c


class PreNormCausalLayer(CausalLayer, PreNormEncoderLayer):
    """The same, whose residual connections normalise first (R11)."""

    def forward(self, x, mask, cache):
        """Map x [B T D]; mask [B 1 T T] and the cache as in a decoder."""
        c = {}
        y, c["self_attention_residual"] = self.self_attention_residual.before(x)
        y, c["self_attention"] = self.self_attention.forward(y, y, mask, cache)
        # [1] attended [B T D]: x + SelfAttention(norm(x))
        attended, after = self.self_attention_residual.forward(x, y)
        c["self_attention_residual"] |= after
        c["attended"] = attended
        y, c["feed_forward_residual"] = self.feed_forward_residual.before(
            attended)
        y, c["feed_forward"] = self.feed_forward.forward(y)
        # [2] output [B T D]: attended + FeedForward(norm(attended))
        output, after = self.feed_forward_residual.forward(attended, y)
        c["feed_forward_residual"] |= after
        c["output"] = output
        return output, c
