"""The commands of ``parity``, a file each."""
