"""Which setting of a module a constant is, and the line that sets it."""

import ast
import functools
import inspect
import math
import sys
import textwrap

from parity.operations.program import Place


def setting_of(modules, path, number):
    """The setting of a module, or of what it is in, that has a value.

    Args:
        modules: {path: module}.
        path: of the module in which the constant is used.
        number: the constant.

    Returns:
        (path of the module, name, Place of the line that sets it), or None.
        The Place is empty where the line is not found.
    """
    while True:
        module = modules.get(path)
        for name, value in () if module is None else vars(module).items():
            if isinstance(value, (int, float)) and not isinstance(
                    value, bool) and not name.startswith("_") and (
                    math.isclose(value, number, rel_tol=1e-9)):
                return path, name, line_of(type(module), name)
        if not path or path == "(model)":
            return None
        path = path.rpartition(".")[0] or "(model)"


@functools.lru_cache(maxsize=256)
def line_of(kind, name):
    """The Place at which a class sets an attribute of its objects."""
    for each in kind.__mro__:
        try:
            lines, first = inspect.getsourcelines(each)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, TypeError, SyntaxError, IndentationError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, (ast.Assign, ast.AnnAssign)):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [
                node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Attribute) and part.attr == name:
                        return Place(getattr(sys.modules.get(
                            each.__module__), "__file__", "") or (
                            inspect.getsourcefile(each) or ""),
                            first + node.lineno - 1, each.__name__)
    return Place()
