"""Which lines of a user's own make the optimiser, the loss and the rest."""

import ast
import contextlib
import linecache
import pathlib
import re
import sys

from parity.tracing.users import is_users

#: What a line has that sets a thing, the most telling first.
TELLING = {
    "optimiser": [r"optim\w*\.\w*(Adam|SGD|RMS|Adagrad|Lion)\w*\(",
                  r"optax\.\w+\(", r"(Adam|SGD|RMSprop|Adagrad|Lion)\w*\(",
                  r"sqrt|-=|\.sub_\(|\.add_\(|optimi[sz]er"],
    "epsilon": [r"\beps(ilon)?\b.*=|\beps", r"1e-\d+.*sqrt|sqrt.*1e-\d+"],
    "clipping": [r"[cC]lip"],
    "schedule": [r"[sS]chedul|warmup|LambdaLR|StepLR", r"\blr\b|rate"],
    "decay": [r"decay|wd\b"],
    "loss": [r"cross_?entropy\w*\(|CrossEntropy|nll_loss|NLLLoss",
             r"mse\w*\(|MSELoss|Mean\w+Error", r"loss\w*\s*=|loss\("],
    "accumulation": [r"accum", r"backward\(|/ ?(k|n|steps|len)\b|apply_every"
                     r"|MultiSteps"],
    "dropout": [r"[dD]ropout", r"\.(train|eval)\("],
    "mode": [r"\.(train|eval)\("],
    "statistics": [r"BatchNorm\w*\("],
    "frozen": [r"requires_grad|trainable|wrt=|detach|stop_gradient"],
    "average": [r"\.(mul_|lerp_)\(", r"\bema\b|EMA|Averaged|decay|teacher"],
    "model": [r"(Linear|Dense|Sequential|Module|Model)\("],
}


class Lines:
    """The lines of users that call something while it watches.

    Attributes:
        lines: {(file, line): None}, in the order in which they first ran.
        default: the line at which a user's function begins, or "".
    """

    def __init__(self):
        self.lines, self.default = {}, ""

    @contextlib.contextmanager
    def __call__(self):
        def seen(frame, event, _):
            if event == "call":
                frame = frame.f_back
            elif event != "c_call":
                return
            if frame is not None and is_users(frame.f_code.co_filename):
                self.lines[frame.f_code.co_filename, frame.f_lineno] = None
        before = sys.getprofile()
        sys.setprofile(seen)
        try:
            yield self
        finally:
            sys.setprofile(before)

    def of(self, *topics):
        """The line that tells most of a topic, the first topic first."""
        for topic in topics:
            for pattern in TELLING[topic]:
                for file, line in reversed(self.lines):
                    if re.search(pattern, linecache.getline(file, line)):
                        return f"{pathlib.Path(file).name}:{line}"
        return self.default

    def of_group(self, index, count, setting):
        """The line that makes a group of an optimiser's parameters, or that
        sets one of its settings; "" where no list of as many groups stands in
        the files. Of several the one nearest to the optimiser is taken.

        Args:
            index, count: which group, of how many.
            setting: its name there, such as "lr".
        """
        optimiser, found = self.of("optimiser"), []
        for file in {file: None for file, _ in self.lines}:
            name = pathlib.Path(file).name
            for group in _groups(file, index, count):
                line = next((value.lineno for key, value in zip(
                    group.keys, group.values) if isinstance(key, ast.Constant)
                    and key.value == setting), group.lineno)
                far = abs(line - int(optimiser.rpartition(":")[2])) if (
                    optimiser.startswith(f"{name}:")) else sys.maxsize
                found.append((far, f"{name}:{line}"))
        return min(found, default=(0, ""))[1]

    def begins_at(self, function):
        """Take a function's own line where no other tells."""
        code = getattr(function, "__code__", None)
        if code is not None and is_users(code.co_filename):
            self.default = (f"{pathlib.Path(code.co_filename).name}:"
                            f"{code.co_firstlineno}")


def _groups(file, index, count):
    """Yield the dict that is a group in each list of so many in a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):  # of a notebook's cell with magic
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple)) and len(
                node.elts) == count and all(
                isinstance(each, ast.Dict) and any(
                    isinstance(key, ast.Constant) and key.value == "params"
                    for key in each.keys) for each in node.elts):
            yield node.elts[index]
