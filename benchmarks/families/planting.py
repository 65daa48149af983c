"""A source file with an edit, as a module of its own."""

import dataclasses
import functools
import importlib.util
import pathlib
import re
import sys
import tempfile

#: Where the short ports stand.
PORTS = pathlib.Path(__file__).parent / "ports"


@functools.cache
def folder() -> pathlib.Path:
    """Where edited files are written, for as long as the process runs."""
    kept = tempfile.TemporaryDirectory(prefix="families")
    folder.kept = kept  # its end is that of the process
    return pathlib.Path(kept.name)


@dataclasses.dataclass(frozen=True)
class EditedSource:
    """A file of source with edits.

    Attributes:
        path: the file that is sound.
        edits: (old, new) each; old stands there once. A third word is text
            after which old is looked for first.
        package: the package that the file is of, for its relative imports.
    """

    path: pathlib.Path
    edits: tuple = ()
    package: str = ""

    @functools.cached_property
    def _edited(self):
        text, lines = self.path.read_text(encoding="utf-8"), []
        for old, new, *after in self.edits:
            begin = text.index(after[0]) if after else 0
            if not after and text.count(old) != 1:
                raise ValueError(f"{old!r} stands {text.count(old)} times in "
                                 f"{self.path.name}, not once")
            at = text.index(old, begin)
            text = text[:at] + new + text[at + len(old):]
            first, last = _apart(old, new)
            lines += range(1 + text.count("\n", 0, at + first),
                           2 + text.count("\n", 0, at + last))
        return text, tuple(lines)

    @property
    def text(self) -> str:
        """The edited source."""
        return self._edited[0]

    @property
    def lines(self) -> tuple:
        """The lines of the edits, from 1; () of a sound file."""
        return self._edited[1]

    @property
    def file(self) -> str:
        """The name of the file, without its folder."""
        return self.path.name

    def load(self):
        """The edited file as a module, loaded once for equal edits."""
        return _load(self)


@functools.cache
def _load(source):
    number = len(list(folder().iterdir()))
    # Hugging Face's decorators read the model's name from the folder.
    file = folder().joinpath(
        str(number), *source.path.parts[-3:-1], source.file)
    file.parent.mkdir(parents=True)
    file.write_text(source.text, encoding="utf-8")
    name = f"{source.package or 'families'}.{source.path.stem}_{number}"
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _apart(old, new):
    """Where new first and last differs from old, as characters of new."""
    def same(old, new):
        return next((i for i, (one, two) in enumerate(zip(old, new))
                     if one != two), min(len(old), len(new)))
    first = same(old, new)
    first += len(re.match(r"\s*", new[first:]).group())
    last = len(new) - 1 - same(old[::-1], new[::-1])
    return min(first, len(new) - 1), max(first, last)


def port(name, *edits) -> EditedSource:
    """A short port by its file's name, with edits."""
    return EditedSource(PORTS / f"{name}.py", tuple(edits))


def hugging_face(name, *edits) -> EditedSource:
    """Hugging Face's modelling file of a model, with edits."""
    package = f"transformers.models.{name}"
    path = importlib.util.find_spec("transformers").origin
    return EditedSource(pathlib.Path(path).parent / "models" / name
                        / f"modeling_{name}.py", tuple(edits), package)
