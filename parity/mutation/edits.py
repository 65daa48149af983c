"""The kinds of edit: what people get wrong in a line that they port.

Docstrings, annotations, the words of errors and the names of steps are left
alone: no number follows from them.
"""

import ast

from parity.mutation import words
from parity.mutation.source import Edit

OPERATORS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "//", "**": "*",
    "@": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|",
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "<<=": ">>=",
    ">>=": "<<=", "&=": "|=", "|=": "&=", "^=": "|=",
}

COMPARISONS = {
    "<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="),
    "==": ("!=",), "!=": ("==",), "is": ("is not",), "in": ("not in",),
}

#: Operands that may stand the other way round without a change.
COMMUTE = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)

#: Functions likewise.
SYMMETRIC = ("min", "max", "minimum", "maximum", "swapaxes")

#: What needs no brackets wherever it stands.
ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript,
         ast.Tuple, ast.List, ast.Dict, ast.GeneratorExp, ast.ListComp)


def operators(source, node):
    """Another operator; the operands swapped; one of them alone."""
    if not isinstance(node, ast.BinOp):
        return
    start, end = source.between(node.left, node.right, OPERATORS)
    yield Edit(start, end, OPERATORS[source.text[start:end]])
    first, last = source.start(node), source.end(node)
    left = source.text[first:start].rstrip()
    right = source.text[end:last].lstrip()
    yield Edit(first, last, left)
    yield Edit(first, last, right)
    if not isinstance(node.op, COMMUTE):
        yield Edit(first, last, f"{bracketed(node.right, right)} "
                   f"{source.text[start:end]} {bracketed(node.left, left)}")


def bracketed(node, text):
    """An operand's text, in brackets unless it needs none."""
    return text if isinstance(node, ATOMS) or text[:1] == "(" else f"({text})"


def assigned_operators(source, node):
    """``x += y`` with another operator, or without one."""
    if isinstance(node, ast.AugAssign):
        start, end = source.between(node.target, node.value, OPERATORS)
        yield Edit(start, end, OPERATORS[source.text[start:end]])
        yield Edit(start, end, "=")


def signs(source, node):
    """``-x`` and ``~x`` and ``not x`` without their sign."""
    if isinstance(node, ast.UnaryOp) and not isinstance(
            node.operand, ast.Constant):
        yield Edit(source.start(node), source.start(node.operand), "")


def comparisons(source, node):
    """The border moved, and the comparison turned round."""
    if not isinstance(node, ast.Compare):
        return
    for left, right in zip([node.left, *node.comparators], node.comparators):
        found = list(source.tokens(source.end(left), source.start(right)))
        found = [one for one in found if one[2] not in "()"]
        text = " ".join(text for _, _, text in found)
        others = {"is not": ("is",), "not in": ("in",)} | COMPARISONS
        for other in others[text]:
            yield Edit(found[0][0], found[-1][1], other)


def conditions(source, node):
    """``and`` for ``or``, a part alone; an ``if`` that always or never is."""
    if isinstance(node, ast.BoolOp):
        for left, right in zip(node.values, node.values[1:]):
            start, end = source.between(left, right, ("and", "or"))
            other = "or" if source.text[start:end] == "and" else "and"
            yield Edit(start, end, other)
        for value in node.values:
            yield Edit(source.start(node), source.end(node), source.of(value))
    elif isinstance(node, ast.IfExp):
        start, _ = source.between(node.body, node.test, ("if",))
        _, end = source.between(node.test, node.orelse, ("else",))
        first, last = source.start(node), source.end(node)
        yield Edit(first, last, source.text[first:start].rstrip())
        yield Edit(first, last, source.text[end:last].lstrip())
    elif isinstance(node, (ast.If, ast.comprehension)):
        tests = [node.test] if isinstance(node, ast.If) else node.ifs
        for test in tests:
            for word in ("True", "False"):
                yield Edit(source.start(test), source.end(test), word)


def numbers(source, node):
    """One more, one less, 0; the other sign in a sum; a fraction doubled.

    An axis with the other sign is often the same one.
    """
    value = getattr(node, "value", None)
    if not isinstance(node, ast.Constant) or (
            isinstance(value, bool) or not isinstance(value, (int, float))):
        return
    sign = source.parents.get(node)
    minus = isinstance(sign, ast.UnaryOp) and isinstance(sign.op, ast.USub)
    value = -value if minus else value
    if isinstance(value, int):
        outer = source.parents.get(sign if minus else node)
        summed = isinstance(
            outer, (ast.BinOp, ast.Compare, ast.AugAssign)) and (
            not isinstance(getattr(outer, "op", None), ast.Mod))
        others = (value + 1, value - 1, 0, -value if summed else value)
    else:
        others = (value * 2, value + 1, 0.0, -value)
    outer = sign if minus else node
    for other in dict.fromkeys(others):
        if other != value:
            yield Edit(source.start(outer), source.end(outer), repr(other))


def truths(source, node):
    """True for False."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield Edit(source.start(node), source.end(node), repr(not node.value))


def texts(source, node):
    """Another word of the same choice, or one that nobody knows."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield Edit(source.start(node), source.end(node),
                   repr(words.another(node.value)).replace("'", '"'))


def names(source, node):
    """A name, an attribute or a module's function taken for its twin."""
    if isinstance(node, ast.Attribute) and (other := words.twin(node.attr)):
        end = source.end(node)
        yield Edit(end - len(node.attr), end, other)
    elif (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
          and (other := words.twin(node.id))
          and other in bound(source, node)):
        yield Edit(source.start(node), source.end(node), other)


def bound(source, node):
    """The names that a function, and the file around it, give a value."""
    found = set()
    for scope in (source.function(node), source.tree):
        for each in ast.walk(scope):
            match each:
                case ast.Name(ctx=ast.Store()):
                    found.add(each.id)
                case ast.arg():
                    found.add(each.arg)
                case ast.FunctionDef() | ast.ClassDef():
                    found.add(each.name)
    return found


def masks(source, node):
    """A mask inverted where it is handed on."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and (
            "mask" in node.id.split("_")) and isinstance(
            source.parents[node], (ast.Call, ast.Tuple, ast.BinOp)) and (
            source.parents[node].__dict__.get("func") is not node):
        yield Edit(source.start(node), source.start(node), "~")


def calls(source, node):
    """``f(x)`` and ``x.f()`` for what they are called with."""
    if not isinstance(node, ast.Call) or of_class(node) or isinstance(
            source.parents[node], ast.Expr):
        return
    if node.args and not isinstance(node.args[0], ast.Starred):
        first = node.args[0]
        yield Edit(source.start(node), source.end(node),
                   bracketed(first, source.of(first)))
    if isinstance(node.func, ast.Attribute) and (
            root(node.func) not in imported(source)):
        behind = node.func.value
        for start, _, text in source.tokens(
                source.end(behind), source.end(node.func)):
            if text == ".":
                yield Edit(start, source.end(node), "")
                return


def of_class(call):
    """Whether a call makes an object: its name begins with a capital."""
    return name_of(call.func).lstrip("_")[:1].isupper()


def name_of(function):
    """The last name of what is called; "" if it has none."""
    return getattr(function, "attr", getattr(function, "id", ""))


def root(node):
    """The name that an attribute is, in the end, one of; else ""."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return getattr(node, "id", "")


def imported(source):
    """The names that a file imports."""
    return {(alias.asname or alias.name).split(".")[0]
            for node in ast.walk(source.tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names}


def arguments(source, node):
    """Two arguments, or two of a tuple, swapped; one by name left out."""
    if isinstance(node, ast.Call):
        listed = () if name_of(node.func) in SYMMETRIC else node.args
        for keyword in node.keywords:
            if keyword.arg:
                yield left_out(source, node, keyword)
    elif isinstance(node, (ast.Tuple, ast.List)):
        listed = node.elts
    else:
        return
    for one, other in zip(listed, listed[1:]):
        first, second = source.of(one), source.of(other)
        if first != second and not isinstance(one, ast.Starred) and (
                not isinstance(other, ast.Starred)):
            between = source.text[source.end(one):source.start(other)]
            yield Edit(source.start(one), source.end(other),
                       second + between + first)


def left_out(source, call, part):
    """A call without an argument and the comma beside it."""
    start, end = source.start(part), source.end(part)
    before = source.text[:start].rstrip()
    if before.endswith(","):
        return Edit(len(before) - 1, end, "")
    behind = source.text[end:].lstrip()
    if behind.startswith(","):
        end = len(source.text) - len(behind[1:].lstrip())
    return Edit(start, end, "")


def slices(source, node):
    """A slice without its beginning or its end."""
    if isinstance(node, ast.Slice):
        for part in (node.lower, node.upper):
            if part:
                yield Edit(source.start(part), source.end(part), "")


def statements(source, node):
    """A statement left out, if what it gives a value has one already."""
    if isinstance(node, ast.Expr) and not isinstance(
            node.value, ast.Constant):
        dropped = True
    elif isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [
            node.target]
        dropped = all(not isinstance(target, ast.Name) or given_before(
            source, node, target.id) for target in targets)
    else:
        dropped = isinstance(node, (ast.Break, ast.Continue, ast.Raise))
    if dropped:
        yield Edit(source.start(node), source.end(node), "pass")


def given_before(source, node, name):
    """Whether a function gives a name a value before a statement."""
    function = source.function(node)
    if isinstance(function, ast.FunctionDef) and name in {
            each.arg for each in ast.walk(function.args)
            if isinstance(each, ast.arg)}:
        return True
    return any(isinstance(each, ast.Name) and each.id == name
               and isinstance(each.ctx, ast.Store)
               and each.lineno < node.lineno for each in ast.walk(function))


def contexts(source, node):
    """A ``with`` without one of its items."""
    if not isinstance(node, ast.With):
        return
    plain = [item for item in node.items if item.optional_vars is None]
    for item in plain:
        part = item.context_expr
        if len(node.items) > 1:
            yield left_out(source, node, part)
        else:
            yield Edit(source.start(node), source.end(part), "if True")


def decorators(source, node):
    """A function without its decorator."""
    for part in getattr(node, "decorator_list", ()):
        yield Edit(source.text.rindex("@", 0, source.start(part)),
                   source.end(part), "")


KINDS = {kind.__name__.replace("_", " "): kind for kind in (
    operators, assigned_operators, signs, comparisons, conditions, numbers,
    truths, texts, names, masks, calls, arguments, slices, statements,
    contexts, decorators)}


def every(source):
    """(kind, Edit) of every edit of a ParsedFile."""
    skipped = left_alone(source)
    for node in ast.walk(source.tree):
        if node not in skipped:
            for kind, edits in KINDS.items():
                yield from ((kind, edit) for edit in edits(source, node))


def left_alone(source):
    """The nodes from which no number follows."""
    found = set()
    for node in ast.walk(source.tree):
        match node:
            case ast.Expr(value=ast.Constant()):
                found.add(node.value)
            case ast.JoinedStr():
                found |= set(ast.walk(node))
            case ast.Raise():
                found |= set(ast.walk(node)) - {node}
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                found |= set(ast.walk(node))
            case ast.Call(func=ast.Name(id="tap")):
                found |= {node, *node.args[:2]}
    return found
