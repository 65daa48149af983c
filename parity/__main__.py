"""``parity``, and ``python -m parity``."""

import os
import sys


def main():
    """Run the command line, unless something here is in its way."""
    if words := _nowhere() or _undocumented():
        sys.exit(_refused(words))
    try:
        from parity.cli import app
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="parity")


def _nowhere():
    """In a sentence, that the folder it runs in was removed; or ""."""
    try:
        os.getcwd()
    except OSError:
        return "this folder was removed, or moved; go to one that exists."
    return ""


def _undocumented():
    """In a sentence, that the texts of the checks were left out; or ""."""
    if sys.flags.optimize > 1:
        return ("-OO leaves out the docstrings by which checks are named; "
                "use -O, or unset PYTHONOPTIMIZE.")
    return ""


def _refused(words):
    """Say a sentence of usage, and return its exit status."""
    print(f"parity: {words}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
