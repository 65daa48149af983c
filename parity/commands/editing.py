"""A text that the reader changes in an editor of their own."""

import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

from parity_io.errors import InputError

#: The editors that are looked for where none is named.
USUAL = ("sensible-editor", "nano", "vim", "vi", "notepad")


def editor():
    """The words of the reader's editor: VISUAL, EDITOR, or the first here.

    Raises:
        InputError: there is none.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if named:
        return shlex.split(named)
    found = next(filter(shutil.which, USUAL), None)
    if not found:
        raise InputError("no editor was found; name yours in the variable "
                         "EDITOR, such as EDITOR=nano.")
    return [found]


def changed(text, suffix):
    """What the reader makes of a text, in a file with this ending.

    Raises:
        InputError: there is no editor, or it cannot be run or fails.
    """
    words = editor()
    with tempfile.TemporaryDirectory(prefix="lesson-") as folder:
        path = pathlib.Path(folder, f"changed{suffix}")
        path.write_text(text + "\n", encoding="utf-8")
        try:
            subprocess.run([*words, str(path)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise InputError(
                f"the editor {words[0]!r} cannot be used ({error}); name "
                "another in the variable EDITOR.") from None
        return path.read_text(encoding="utf-8").rstrip()
