"""The one exception that stands for somebody's mistake rather than ours."""


class InputError(ValueError):
    """Something handed to us cannot be used.

    The message is one sentence that names the thing and says what to do. The
    command line prints it and exits with status 2; it never shows a traceback.
    """


def one_of(value, allowed, what):
    """Return ``value`` if it is one of ``allowed``, else raise InputError."""
    if value not in allowed:
        raise InputError(
            f"{what} {value!r} is unknown; choose one of {', '.join(allowed)}."
        )
    return value
