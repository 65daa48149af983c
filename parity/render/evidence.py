"""The evidence of a comparison as one page of Markdown, and as JSON."""

import pathlib

from parity_io.errors import InputError
from parity_io.files import check_writable, write_json, write_whole
from parity.numerics.words import number
from parity.render.markdown import code, plain

PAGE, DATA = "evidence.md", "evidence.json"

#: How many divergences the page lists; the JSON has all.
MOST = 20


def made(folder):
    """The folder of the evidence, made if needed, before the work.

    Raises:
        InputError: it cannot be made or written, or holds something else.
    """
    folder = pathlib.Path(folder)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {str(folder)!r} cannot be made ({error.strerror}); "
            "give one inside a folder that exists.") from None
    if other := sorted({path.name for path in folder.iterdir()}
                       - {PAGE, DATA}):
        raise InputError(
            f"the folder {str(folder)!r} holds {other[0]!r}, which is no "
            "evidence; give a new folder.")
    for name in (PAGE, DATA):
        check_writable(folder / name)
    return folder


def write(data, folder):
    """Write what ``evidence`` returned to a folder that is there."""
    write_json(folder / DATA, data)
    write_whole(folder / PAGE, as_markdown(data))


def as_markdown(data):
    """The page: the verdict and why first, then what it rests on."""
    diverging = [row for row in data["rows"] if row["diverges"]]
    return "\n".join([
        f"# Parity: {data['verdict']}", "", plain(data["sentence"]), "",
        *(f"- **{plain(each['cause'])}**: {plain(each['sentence'])}"
          for each in data["explanations"]),
        *[""] * bool(data["explanations"]),
        *_command(data["command"]),
        "| | a | b |", "|---|---|---|", *_sides(data), "",
        *_rows("Diverges", diverging[:MOST], len(diverging)),
        *_headroom(data["headroom"]),
        *(f"- note: {plain(note)}" for note in data["notes"]), ""])


def _command(command):
    """How to repeat it."""
    return ["Again:", "", "```sh", command, "```", ""] if command else []


def _sides(data):
    """The rows of a table that say what the two models are."""
    sides = [(data[name], data["sides"][name]) for name in "ab"]

    def row(title, cells):
        return f"| {title} | {' | '.join(cells)} |"
    yield row("versions", [plain(", ".join(
        f"{name} {version}" for name, version in about["versions"].items()))
        for about, _ in sides])
    yield row("computed in", [plain(", ".join(filter(None, (
        about["dtype"], each["device"])))) for about, each in sides])
    yield row("parameters", [
        f"{each['numbers']:,}, {each['trainable']:,} trainable"
        for _, each in sides])
    yield row("dtypes", [plain(", ".join(sorted({
        tensor["dtype"] for step in each["steps"].values()
        for tensor in step.values()}))) for _, each in sides])
    yield row("steps", [str(about["steps"]) for about, _ in sides])
    yield row("inputs", [", ".join(
        f"{code(name)} {tensor['dtype']} {tensor['shape']} "
        f"{tensor['sha256'][:12]}" for name, tensor in each["inputs"].items())
        for _, each in sides])
    environment = data["environment"]
    yield row("machine", [plain(
        f"Python {environment['python']}, {environment['platform']}")] * 2)


def _rows(title, rows, count):
    """A table of rows."""
    if not rows:
        return
    more = f", of which {len(rows)} are listed" if count > len(rows) else ""
    yield from (f"{title}: {count}{more}", "",
                "| what | step of a | step of b | error | limit |",
                "|---|---|---|---:|---:|")
    for row in rows:
        yield (f"| {row['part']} | {code(row['a'])} | {code(row['b'])} | "
               f"{number(row['error'])} | {number(row['limit'])} |")
    yield ""


def _headroom(rows):
    """What matches, and comes nearest to its limit."""
    if not rows:
        return
    yield from ("Matches, and comes nearest to its limit:", "")
    for row in rows:
        yield (f"- {row['part']} of {code(row['a'])}: {number(row['error'])}, "
               f"{row['times']:.0f} times below {number(row['limit'])}")
    yield ""
