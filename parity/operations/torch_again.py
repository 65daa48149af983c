"""An operation of torch, done anew on other operands."""

import numpy as np
import torch

from parity.operations.torch_calls import (
    in_full, tensors_of, to_numpy, tree_map)
from parity.operations.torch_names import at, put
from parity.operations.torch_twins import widened


class TorchAgain:
    """Does one operation of an exact run anew, and keeps nothing that it read.

    Args:
        function: the overload.
        args, kwargs: its arguments.
        paths: those of its operands among them.
    """

    def __init__(self, function, args, kwargs, paths):
        self.function, self.paths, self.kinds = function, paths, []
        for path in paths:
            value = at(args, kwargs, path)
            self.kinds.append(value.dtype if isinstance(value, torch.Tensor)
                              else type(value))
            args, kwargs = put(args, kwargs, path, None)
        self.args, self.kwargs = args, kwargs

    def __call__(self, arrays):
        """What it gives of some arrays: an array a result."""
        args, kwargs = self.args, self.kwargs
        for path, kind, array in zip(self.paths, self.kinds, arrays):
            value = torch.from_numpy(np.array(array)).to(kind) if isinstance(
                kind, torch.dtype) else kind(array.item())
            args, kwargs = put(args, kwargs, path, value)
        with torch.no_grad():
            made = in_full(self.function, args, kwargs,
                           self.function(*args, **kwargs))
        return [to_numpy(each) for each in tensors_of(tree_map(widened, made))]
