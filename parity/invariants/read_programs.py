"""A read with a cache, and all tokens at once, run as operations."""

import functools

import numpy as np

from parity_io.errors import InputError
from parity.causes.deciding import Side
from parity.numerics.tolerances import model_limits
from parity.tracing.holders import held


def reading(model, run):
    """A model of the same framework that calls ``run(model)``."""
    from parity.tracing.trace import framework_of
    framework = framework_of(model)
    if framework == "torch":
        import torch

        class TorchReading(torch.nn.Module):
            """One read."""

            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self):
                return run(self.model)
        made = TorchReading()
        made.training = model.training
        return made
    if framework == "jax":
        from flax import nnx

        class FlaxReading(nnx.Module):
            """One read."""

            def __init__(self):
                self.model = model

            def __call__(self):
                return run(self.model)
        return FlaxReading()
    raise InputError(f"of {framework} modules alone are seen.")


class ReadPrograms:
    """One wrong read, the reads before it and all tokens at once, each run as
    operations.

    Args:
        asker: the Asker of the model.
        use, number: the Use, and which of its Reads is wrong.
    """

    def __init__(self, asker, use, number):
        self.asker, self.use, self.number = asker, use, number
        self.read, self.keeping = use.reads[number], asker.keeping
        self.length = asker.length(use)

    @functools.cached_property
    def whole(self):
        """The Program of all tokens at once."""
        return self.program_of(self.use.arrays)

    def program_of(self, arrays):
        """The Program of some arrays, all at once."""
        model = self.asker.model
        return Side(reading(model, lambda model: self.keeping.whole(
            model, arrays)), (), {}).runner().run()

    def prepare(self):
        """Read what comes before, and the read as operations."""
        self.runner = self.runner_of(self.number, lambda made: made[0])
        self.part = self.runner.run()

    def runner_of(self, number, gives):
        """A Runner of one of the Use's reads.

        Args:
            gives: a function of (what is answered, what is kept), of which
                what it returns is the Program's output.
        """
        keeping, read = self.keeping, self.use.reads[number]
        with keeping.call.put_back():
            *_, (arrays, state) = self.asker.answers(self.use, until=number)
        return Side(reading(
            self.asker.model, lambda model: gives(keeping.read(
                model, arrays, read.start, read.stop, keeping.copied(state)))),
            (), {}).runner()

    def before(self):
        """Yield (Program, Read) of the reads before this of its request, the
        last first; what each kept is its output."""
        is_array = self.keeping.call.framework.is_array
        for number in range(self.number - 1, -1, -1):
            read = self.use.reads[number]
            if read.request == self.read.request and read.arrays is None:
                yield self.runner_of(number, lambda made: held(
                    made[1], "kept", is_array, every=True)).run(), read

    def pairs(self):
        """Yield each operation of the read, and the whole's of the same line,
        module and name; None where there is none."""
        def keyed(program):
            counts: dict = {}
            for operation in program.operations:
                key = (operation.module, str(operation.place),
                       operation.native)
                counts[key] = counts.get(key, 0) + 1
                yield (*key, counts[key]), operation
        others = dict(keyed(self.whole))
        for key, operation in keyed(self.part):
            yield operation, others.get(key)

    def ways(self, mine, other):
        """Yield what of the whole's array may stand in the read's place."""
        if mine is None or other is None or mine.ndim != other.ndim:
            return
        read, made = self.read, [mine]
        count = read.stop - read.start
        if read.rows is not None and mine.ndim and other.shape[0] == len(
                read.rows) and mine.shape[0] == self.rows:
            made = [mine[list(read.rows)]]
        for axis in range(mine.ndim):
            size = other.shape[axis]
            if made[0].shape[axis] == size:
                continue
            if made[0].shape[axis] != self.length:
                return
            spans = []
            if size == count:
                spans.append((read.start, read.stop))
            if size == read.stop or size < read.stop and size != count:
                spans.append((read.stop - size, read.stop))
            if size > read.stop:
                spans.append((0, read.stop))
            made = [each[(slice(None),) * axis + (slice(*span),)]
                    for each in made for span in spans]
        for each in made:
            if each.shape != other.shape:  # a static cache has room behind
                filled = np.array(other)
                filled[tuple(map(slice, each.shape))] = each
                each = filled
            yield each

    @property
    def rows(self):
        """How many rows the whole has."""
        return len(self.use.arrays[self.keeping.call.sequences[
            self.keeping.role].lead])


def same(one, other):
    """Whether two arrays are the same within rounding."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc" or other.dtype.kind not in "fc":
        return np.array_equal(one, other)
    limit = model_limits(other.dtype.name)[0]
    one, other = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return False
    distance = np.abs(one[finite] - other[finite])
    size = np.abs(one[finite]).max(initial=0)
    return bool((distance <= limit * max(size, 1e-300)).all())
