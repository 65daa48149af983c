"""Ready pages: those that an installed release was built with.

``make pages`` makes them, with all four; they are one archive, which a wheel
has beside this file, and so has a checkout in which they were made. A checkout
may have changed since: what they are made of is known by a hash.
"""

import hashlib
import io
import json
import os
import pathlib
import sys
import tempfile
import zipfile
import zlib

from parity_io.errors import InputError
from parity_io.files import new_folder, as_input_error, write_whole
from transformer_contract.shipped import INSTALLED, PACKAGES, SUMS
from parity import ports

ARCHIVE = pathlib.Path(__file__).parent / "ready" / "pages.zip"

#: The file by which a folder is known to be such a site.
MARK = "parity-read.json"

#: What pages are made of: code, templates, formulas, lessons and rulings.
MADE_OF = {".py", ".html", ".css", ".js", ".toml", ".md"}
FOLDERS = ("transformer_contract", "parity", "lessons")
FILES = ("RULINGS.md", f"weights/{SUMS}")

#: The time of each file in an archive, so that its bytes are the pages' alone.
TIME = (1980, 1, 1, 0, 0, 0)


def refuse(folder):
    """Raise InputError unless a folder is new, empty or such a site.

    And where it cannot be made, since pages take minutes.
    """
    folder = pathlib.Path(folder).resolve()
    place = next(filter(os.path.exists, folder.parents), folder)
    try:
        os.rmdir(tempfile.mkdtemp(dir=place))
    except OSError:
        raise InputError(
            f"{str(place)!r} is no folder that can be written to; choose "
            "another.") from None
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is a file; give a folder.")
    if any(folder.iterdir()) and not (folder / MARK).is_file():
        raise InputError(
            f"the folder {str(folder)!r} holds something else; give a new or "
            "an empty one.")


def made_of(root=PACKAGES):
    """The SHA-256 of all that a checkout's pages are made of."""
    whole = hashlib.sha256()
    for path in sorted({
            *(root / name for name in FILES),
            *(path for folder in (*FOLDERS, *map(ports.package, (
                "numpy", *ports.known_ports())))
              for path in (root / folder).rglob("*")
              if path.suffix in MADE_OF)}):
        if path.is_file():
            whole.update(str(path.relative_to(root)).encode())
            whole.update(path.read_bytes())
    return whole.hexdigest()


def pack(folder, path=ARCHIVE):
    """Write a site's folder as an archive; how many bytes it takes."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for page in sorted(pathlib.Path(folder).iterdir()):
            archive.writestr(zipfile.ZipInfo(page.name, TIME),
                             page.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data.getvalue())
    return len(data.getvalue())


def read(path=ARCHIVE, names=None):
    """{name: bytes} of an archive, and what its mark says.

    Args:
        names: of files; all by default.

    Raises:
        InputError: it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            there = archive.namelist()
            files = {name: archive.read(name) for name in names or there}
        mark = json.loads(files[MARK])
        if (any(pathlib.PurePath(name).name != name for name in files)
                or not mark["pages"].keys() < set(there)):
            raise ValueError
    except (OSError, KeyError, ValueError, AttributeError, TypeError,
            zlib.error, zipfile.BadZipFile):
        raise InputError(
            f"the ready pages {str(path)!r} are damaged; make new ones with "
            "--rebuild.") from None
    return files, mark


def fit(mark):
    """Whether the pages of this mark are of the code that is here."""
    return INSTALLED.is_dir() or mark.get("of") == made_of()


def are_here():
    """Whether there are ready pages, and of the code that is here."""
    if INSTALLED.is_dir() or not ARCHIVE.is_file():
        return ARCHIVE.is_file()
    return fit(read(ARCHIVE, [MARK])[1])


def there(folder):
    """The mark of the site that a folder holds, or None."""
    try:
        mark = json.loads((pathlib.Path(folder) / MARK).read_bytes())
        whole = all((pathlib.Path(folder) / name).is_file()
                    for name in mark["pages"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return mark if whole else None


def unpack(folder, path=ARCHIVE):
    """Write ready pages into a folder, whole or not at all: their mark.

    Raises:
        InputError: they are damaged, or the folder holds something else.
    """
    folder = pathlib.Path(folder).resolve()
    refuse(folder)
    files, mark = read(path)
    with as_input_error(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with as_input_error(folder), new_folder(folder, replace=True) as fresh:
        for name, data in files.items():
            (fresh / name).write_bytes(data)
    return mark


if __name__ == "__main__":
    print(f"{pack(sys.argv[1]):,} bytes of ready pages in {ARCHIVE}")
