"""``python -m parity``."""

from parity.cli import app

app(prog_name="parity")
