"""``parity``, and ``python -m parity``."""

import sys

from parity import clash


def main():
    """Run the command line, unless another's package is in its way."""
    if words := clash():
        sys.exit(_refused(words))
    from parity.cli import app
    app(prog_name="parity")


def _refused(words):
    """Say a sentence of usage, and return its exit status."""
    print(f"parity: {words}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
