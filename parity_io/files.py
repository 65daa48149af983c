"""The one writer: a file or a folder is written whole, or not at all.

A program that is killed leaves the old one or the new one, never half of one.
Its unfinished one stays beside it as ``.NAME.….partial``, until the next writer
of that name removes it: a writer holds a lock on what it has not finished, and
a lock ends with its process.
"""

import contextlib
import ctypes
import errno
import json
import os
import pathlib
import shutil
import sys
import tempfile
import types

from parity_io.errors import InputError

fcntl: types.ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows, where nothing is locked
    fcntl = None

SUFFIX = ".partial"

#: What the system says where there is no room.
FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG

#: What renameat2 of Linux and renamex_np of macOS are told.
AT_FDCWD, RENAME_EXCHANGE, RENAME_SWAP = -100, 2, 2


@contextlib.contextmanager
def locked(path):
    """Hold a file or folder that exists, against other processes.

    Raises:
        BlockingIOError: another process holds it.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        if fcntl:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:
                pass  # a file system that has no locks
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _unfinished(path, make):
    """A new temporary file or folder beside a path, held until the end."""
    prefix = f".{path.name[:40]}."
    clean(path.parent, prefix)
    with contextlib.ExitStack() as stack:
        while True:
            temporary = make(dir=path.parent, prefix=prefix, suffix=SUFFIX)
            try:
                stack.enter_context(locked(temporary))
            except (FileNotFoundError, BlockingIOError):
                continue  # another writer takes it for litter
            if os.path.exists(temporary):
                break
        yield pathlib.Path(temporary)


def clean(folder, prefix):
    """Remove what killed writers of a name have left."""
    for path in pathlib.Path(folder).glob("*" + SUFFIX):
        if not path.name.startswith(prefix) or not fcntl:
            continue
        with contextlib.suppress(OSError), locked(path):
            _remove(path)


def _remove(path):
    """Remove a file or a folder, if it is there."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


def _make_file(**names):
    handle, path = tempfile.mkstemp(**names)
    os.close(handle)
    return path


@contextlib.contextmanager
def new_file(path):
    """A temporary file beside ``path``; after the block it takes that name.

    If the block raises, ``path`` stays as it was. A link stays one, and what it
    leads to is written.

    Raises:
        OSError: it cannot be written, or is no ordinary file.
    """
    path = pathlib.Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no ordinary file")
    with _unfinished(path, _make_file) as temporary:
        try:
            yield temporary
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        finally:
            _remove(temporary)


@contextlib.contextmanager
def new_folder(path, replace=False):
    """A temporary folder beside ``path``; after the block it takes that name.

    ``path`` must then not exist, or be an empty folder; or with ``replace`` be
    a folder, which is exchanged for the new one at once and removed.
    """
    name, path = str(path), pathlib.Path(path).absolute()
    with _unfinished(path, tempfile.mkdtemp) as temporary:
        try:
            yield temporary
            os.chmod(temporary, 0o755)
            if replace and path.is_dir():
                exchange(temporary, path)
            else:
                os.replace(temporary, path)
        except InputError as error:  # of a file inside, by the name it gets
            raise InputError(
                str(error).replace(str(temporary), name)) from None
        finally:
            _remove(temporary)


def exchange(one, other):
    """Exchange two names; at once where the system can.

    Where it cannot, ``other`` is away for a moment, as ``OTHER.old``.
    """
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        failed = library.renameat2(
            AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)
    elif hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, RENAME_SWAP)
    else:
        failed = True
    if failed:
        old = pathlib.Path(f"{other}.old")
        os.replace(other, old)
        os.replace(one, other)
        os.replace(old, one)


def write_whole(path, content):
    """Write a file whole or not at all; text goes as UTF-8, bytes as they are.

    Raises:
        InputError: the file's folder does not exist or cannot be written to,
            or the disk is full.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "backslashreplace")
    with as_input_error(path), new_file(path) as file:
        file.write_bytes(content)


@contextlib.contextmanager
def as_input_error(path):
    """Make an InputError of an OSError while ``path`` is written."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written ({error.strerror or error}); "
            f"{advice(error)}.") from None


def advice(error):
    """What to do about an OSError while something is written."""
    if error.errno in FULL:
        return "make room on the disk, or choose another"
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES,
                       errno.EPERM, errno.EROFS):
        return "choose a folder that exists and is writable"
    return "choose another file"


def check_room(folder, size):
    """Raise InputError unless files of so many bytes fit into a folder."""
    with as_input_error(folder), tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, max(size, 1))
        elif shutil.disk_usage(folder).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def write_json(path, data):
    """Write JSON whole or not at all."""
    write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def read_text(path):
    """The text of an ordinary file in UTF-8, a mark of byte order left out.

    Raises:
        InputError: it is no ordinary file, cannot be read or is not UTF-8.
    """
    check_ordinary(path)
    try:
        return pathlib.Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be read ({error.strerror}); check the path."
        ) from None
    except UnicodeDecodeError:
        raise InputError(
            f"{str(path)!r} is not UTF-8; save it as UTF-8.") from None


def check_ordinary(path):
    """Raise InputError for a pipe or a device, of which there is no end."""
    path = pathlib.Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(
            f"{str(path)!r} is a pipe or a device; give an ordinary file.")


def check_writable(*paths, read=()):
    """Raise InputError before the work if a report cannot be written.

    Args:
        paths: where the command will write; None is nowhere.
        read: files and folders that it reads, over which nothing is
            written, nor over a file that lies in such a folder.
    """
    taken = set(map(os.path.realpath, filter(None, read)))
    folders = {path for path in taken if os.path.isdir(path)}
    for path in filter(None, paths):
        real = os.path.realpath(path)
        inside = os.path.exists(real) and not folders.isdisjoint(
            map(str, pathlib.Path(real).parents))
        if real in taken or inside:
            raise InputError(
                f"{str(path)!r} is another file of this command; give each "
                "file a name of its own.")
        taken.add(real)
        _check_writable(pathlib.Path(real))


def _check_writable(path):
    if path.exists() and not path.is_file() or not path.parent.is_dir():
        raise InputError(
            f"{str(path)!r} cannot be written; give a file in a folder that "
            "exists.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(
            f"the folder {str(path.parent)!r} is not writable; choose "
            "another.")
