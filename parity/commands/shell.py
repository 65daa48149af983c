"""What every command does alike: exit statuses, and errors in a sentence.

Status 1 says that something diverges, or that a port fails: a user's mistake is
2, with one sentence; a mistake of ours 70, with a traceback; Ctrl-C 130; and
an output that nobody reads any more 141, as the shell has it.
"""

import contextlib
import errno
import os
import sys
import traceback

import typer
from typer.core import TyperGroup

from contract.errors import InputError
from contract.files import FULL
from parity import shortage

DIVERGED, USAGE, MISSING, NOTHING = 1, 2, 3, 4
BUG, INTERRUPTED, UNREAD = 70, 130, 141

#: What the system says of a path that cannot be used.
REFUSED = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS,
           errno.ELOOP, errno.EISDIR, errno.ENOTDIR)

#: What it says where a disk, or the way to it, fails.
BROKEN = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT)

#: The longest sentence on a mistake; of a longer one the middle is left out.
LONGEST = 2000


class Commands(TyperGroup):
    """The commands; what they raise becomes an exit status."""

    def main(self, *args, **more):
        """Run a command; of a mistake of ours print all, and exit with 70."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().main(*args, **more)
        except Exception:
            traceback.print_exc()
            print("parity: this is a mistake in parity, not of yours; please "
                  "report it with the lines above and the command, on the "
                  "page where you got the project.", file=sys.stderr)
            sys.exit(BUG)

    def invoke(self, ctx):
        """Run the command that was named."""
        try:
            with told_plainly():
                try:
                    return super().invoke(ctx)
                finally:
                    sys.stdout.flush()
        except BrokenPipeError:
            _forget_output()
            raise typer.Exit(UNREAD) from None


def _forget_output():
    """Let what is still to be printed go nowhere; it would fail once more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def told_plainly():
    """Say an InputError in one sentence on standard error and exit with 2.

    So it does with what the machine lacks: memory, and room on the disk.
    """
    try:
        yield
    except InputError as error:
        said(str(error))
    except EOFError:
        said("standard input ended early; give the rest.")
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename!r} "
        if error.errno in FULL:
            if not name:
                _forget_output()
            said(f"{name or 'the output '}cannot be written "
                 f"({error.strerror}); make room, or choose another disk.")
        if error.errno in BROKEN:
            said(f"{name or 'a file '}cannot be read or written "
                 f"({error.strerror}); its disk fails: choose another path.")
        if not name or error.errno not in REFUSED:
            raise
        said(f"{name}cannot be used ({error.strerror}); choose another path.")
    except Exception as error:
        words = shortage.lacking(error)
        if not words:
            raise
        said(words)


def said(text):
    """Print a sentence on a user's mistake on one line, and exit with 2."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST // 2]} … {text[-LONGEST // 2:]}"
    print(f"parity: {text}", file=sys.stderr)
    raise typer.Exit(USAGE) from None
