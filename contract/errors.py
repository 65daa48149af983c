"""The one exception for a user's mistake, not ours."""


class InputError(ValueError):
    """An input cannot be used.

    The message is one sentence that names the input and says what to do. The
    command line prints it and exits with status 2; it never shows a traceback.
    """


def one_of(value, allowed, what):
    """Return ``value`` if it is one of ``allowed``, else raise InputError."""
    if value not in allowed:
        raise InputError(
            f"{what} {value!r} is unknown; choose one of {', '.join(allowed)}."
        )
    return value
