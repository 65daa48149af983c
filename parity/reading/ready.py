"""Ready pages: those that an installed release was built with.

``make pages`` makes them, with all four; they are one archive, which a wheel
has beside this file. A checkout makes its pages anew.
"""

import io
import json
import os
import pathlib
import sys
import tempfile
import zipfile
import zlib

from transformer_contract.errors import InputError
from transformer_contract.files import new_folder, told, write_whole
from transformer_contract.shipped import INSTALLED

ARCHIVE = pathlib.Path(__file__).parent / "ready" / "pages.zip"

#: The file by which a folder is known to be such a site.
MARK = "parity-read.json"

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


def are_here():
    """Whether there are ready pages, and no checkout that they may not fit."""
    return INSTALLED.is_dir() and ARCHIVE.is_file()


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


def read(path=ARCHIVE):
    """{name: bytes} of an archive, and what its mark says.

    Raises:
        InputError: it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        mark = json.loads(files[MARK])
        if (any(pathlib.PurePath(name).name != name for name in files)
                or not mark["pages"].keys() < files.keys()):
            raise ValueError
    except (OSError, KeyError, ValueError, AttributeError, TypeError,
            zlib.error, zipfile.BadZipFile):
        raise InputError(
            f"the ready pages {str(path)!r} are damaged; make new ones with "
            "--rebuild.") from None
    return files, mark


def unpack(folder, path=ARCHIVE):
    """Write ready pages into a folder, whole or not at all: their mark.

    Raises:
        InputError: they are damaged, or the folder holds something else.
    """
    folder = pathlib.Path(folder).resolve()
    refuse(folder)
    files, mark = read(path)
    with told(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with told(folder), new_folder(folder, replace=True) as fresh:
        for name, data in files.items():
            (fresh / name).write_bytes(data)
    return mark


if __name__ == "__main__":
    print(f"{pack(sys.argv[1]):,} bytes of ready pages in {ARCHIVE}")
