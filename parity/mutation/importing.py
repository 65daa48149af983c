"""A port imported anew, one of its files with another text."""

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys

from parity import ports

#: What a module with probes calls the set in which it notes them.
RAN = "_ran"


class Texts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of a port, and runs them from code compiled before.

    Args:
        name: the port's.
    """

    def __init__(self, name):
        self.package, self.folder = ports.package(name), ports.folder(name)
        self.texts = {
            path.relative_to(self.folder).as_posix(): path.read_text("utf-8")
            for pattern in ("*.py", "dialects/*.py")
            for path in sorted(self.folder.glob(pattern))}
        self._plain = {file: self._compiled(file, text)
                       for file, text in self.texts.items()}
        self._codes, self.ran = self._plain, set()

    def _compiled(self, file, text):
        return compile(text, str(self.folder / file), "exec")

    def find_spec(self, name, path=None, target=None):
        """The place of a module of the port; of any other, None."""
        below = f"{name}.".removeprefix(f"{self.package}.")
        if f"{name}." == below:
            return None
        stem = below.replace(".", "/")
        file, whole = f"{stem.rstrip('/')}.py", f"{stem}__init__.py"
        found = next((one for one in (file, whole) if one in self.texts), None)
        if found is None:
            return None
        inside = [str(self.folder / stem)] if found == whole else None
        return importlib.util.spec_from_file_location(
            name, self.folder / found, loader=self,
            submodule_search_locations=inside)

    def exec_module(self, module):
        """Run a module's code."""
        file = pathlib.Path(module.__spec__.origin).relative_to(
            self.folder).as_posix()
        vars(module)[RAN] = self.ran
        exec(self._codes[file], vars(module))

    def mutated(self, file, text):
        """The port's engine, imported anew, with ``file`` of this text.

        Raises:
            Exception: whatever the port raises while it is imported.
        """
        return self._imported(
            {**self._plain, file: self._compiled(file, text)})

    def probed(self):
        """The port's engine as it is, except that ``ran`` notes what runs.

        ``ran`` is a set of (file, first line of a statement).
        """
        self.ran.clear()
        return self._imported({
            file: self._compiled(file, with_probes(file, text))
            for file, text in self.texts.items()})

    def _imported(self, codes):
        self._codes = codes
        for name in list(sys.modules):
            if f"{name}.".startswith(f"{self.package}."):
                del sys.modules[name]
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        ports.engine.cache_clear()
        return importlib.import_module(f"{self.package}.engine")


def with_probes(file, text):
    """The syntax of a file in which every statement is noted before it runs."""
    tree = ast.parse(text)
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, [
                    each for statement in statements
                    for each in (probe(file, statement), statement)
                    if not is_text(statement) or each is statement])
    return ast.fix_missing_locations(tree)


def is_text(statement):
    """Whether a statement is a docstring, which has to stay the first."""
    return isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Constant)


def probe(file, statement):
    """The statement that notes another one."""
    noted = ast.parse(f"{RAN}.add(({file!r}, {statement.lineno}))").body[0]
    return ast.copy_location(noted, statement)
