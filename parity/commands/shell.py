"""What every command does alike: exit statuses, and errors in a sentence.

Status 1 says that something diverges, or that a port fails: a user's mistake is
2, with one sentence; a mistake of ours 70, with a traceback; Ctrl-C 130; and
an output that nobody reads any more 141, as the shell has it.
"""

import collections.abc
import contextlib
import dataclasses
import errno
import functools
import importlib
import os
import re
import sys
import traceback

import typer
from typer.core import TyperCommand, TyperGroup

from parity_io.errors import InputError
from parity_io.files import FULL
from parity import ports, out_of_memory

DIVERGED, USAGE, MISSING, NOTHING = 1, 2, 3, 4
BUG, INTERRUPTED, UNREAD = 70, 130, 141

#: What the system says of a path that cannot be used.
REFUSED = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS,
           errno.ELOOP, errno.EISDIR, errno.ENOTDIR)

#: What it says where a disk, or the way to it, fails.
BROKEN = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT)

#: The longest sentence on a mistake; of a longer one the middle is left out.
LONGEST = 2000


#: What earlier versions called a command -> what it is called now.
OLD_NAMES = {
    **{name: f"parity check {name}" for name in (
        "vectors", "matrix", "faults", "shards", "ledger", "differences")},
    **{name: f"parity train {name}" for name in (
        "curves", "quality", "tokenizer", "weights")},
    "fetch": "parity import",
    "cache": "parity invariance --way cache",
    "bench": "python -m benchmarks, in a clone",
    "mutate": "cosmic-ray exec mutation.toml edits.sqlite (docs/mutation.md)",
}

#: What options of a command were called, and what is done now.
OLD_OPTIONS = {"train": {
    name: f"is now written {new}; write that instead" for name, new in {
        **{f"--{field.replace('_', '-')}": f"--set {field}=VALUE" for field in (
            "d_model", "d_ff", "max_length", "dropout", "label_smoothing",
            "smoothing", "optimizer", "schedule", "warmup_steps", "clip_norm",
            "weight_decay", "masks", "seed")},
        "--heads": "--set n_heads=N", "--rate": "--set learning_rate=X",
        "--layers": "--set n_encoder_layers=N --set n_decoder_layers=N",
    }.items()},
    "compare": {
        "--allow-same": "is always so now: what is equal is a match; leave "
                        "it out",
        "--replace": "is always so now: every fault is told; leave it out"},
    "dialects": {
        "--prove": "is now python -m parity_tests.originals, in a clone; call "
                   "that instead"}}


class Command(TyperCommand):
    """A command whose help fits a screen.

    Options of a panel, which few ask for, stand in a paragraph of its name.
    """

    def parse_args(self, ctx, args):
        """Read the options; an old one is answered by what it is now."""
        old = OLD_OPTIONS.get(ctx.info_name, {})
        for name in (word.partition("=")[0] for word in args):
            if name in old:
                said(f"{name} {old[name]}.")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx):
        """How it is written in a line: arguments as their metavars are."""
        return [self.options_metavar, *(
            param.metavar for param in self.get_params(ctx)
            if param.param_type_name == "argument")]

    def format_options(self, ctx, formatter):
        """List the arguments and the options; then tell each panel's."""
        rows: dict = {"argument": [], "option": []}
        panels: dict = {}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is None:
                continue
            record = shortened(param, *record) if (
                param.param_type_name == "option") else (
                    param.metavar or record[0], record[1])
            if panel := getattr(param, "rich_help_panel", None):
                panels.setdefault(panel, []).append(" ".join(record))
            else:
                rows[param.param_type_name].append(record)
        with formatter.section("Arguments and options" if rows["argument"]
                               else "Options"):
            formatter.write_dl([*rows["argument"], *rows["option"]])
        for name, texts in panels.items():
            with formatter.section(name):
                formatter.write_text(f"{'; '.join(texts)}.")


#: How help writes what an option takes that has no metavar of its own.
METAVARS = {"str": "NAME", "int": "N", "float": "X"}


def shortened(option, names, text):
    """(how an option is written, what it is), without its range.

    A flag that is on is told by what turns it off.
    """
    if option.is_flag:
        return (option.default and option.secondary_opts or [names])[0], (
            option.help or "")
    names = re.sub(r"<(\w+)[^>]*>$", lambda kind: METAVARS.get(
        kind[1], kind[0]), names)
    told = option.show_default and option.default not in (None, 0, "")
    return names, (option.help or "") + (
        f"  [default: {option.default}]" if told else "")


@dataclasses.dataclass(frozen=True)
class Listed:
    """A command, which is imported when it is asked for.

    Attributes:
        function: its module in parity.commands, and its function there.
        line: its line in --help.
        group: under which it is listed there; "" of a part of another.
        epilog: what stands last in its own --help.
    """

    function: str
    line: str
    group: str = ""
    epilog: str | None = None

    @property
    def name(self):
        """What the function is called on the command line."""
        return self.function.partition(".")[2].rstrip("_")

    @functools.cached_property
    def command(self):
        """The command."""
        module, _, name = self.function.partition(".")
        app = typer.Typer(
            add_completion=False, rich_markup_mode=None,
            pretty_exceptions_enable=False)
        app.command(cls=Command, short_help=self.line, epilog=self.epilog)(
            getattr(importlib.import_module(f"parity.commands.{module}"),
                    name))
        return typer.main.get_command(app)


class Imported(collections.abc.Mapping):
    """Commands by name, each imported when it is asked for."""

    def __init__(self, entries):
        self.entries = entries

    def __getitem__(self, name):
        return self.entries[name].command

    def __iter__(self):
        return iter(self.entries)

    def __len__(self):
        return len(self.entries)


class Commands(TyperGroup):
    """The commands; what they raise becomes an exit status.

    A name may be two words, such as "check vectors". It is then listed in the
    help of the command of its first word.
    """

    #: {name: Listed}, of whoever makes a group of them.
    entries: dict[str, Listed] = {}

    def __init__(self, **more):
        super().__init__(**more)
        self.commands = Imported(self.entries)

    def resolve_command(self, ctx, args):
        """Find the command of the first two words, or of the first."""
        two = " ".join(args[:2])
        if len(args) > 1 and two in self.commands:
            return two, self.commands[two], args[2:]
        if args[0] in OLD_NAMES and args[0] not in self.commands:
            said(f"parity {args[0]} is now called {OLD_NAMES[args[0]]}; write "
                 "that instead.")
        return super().resolve_command(ctx, args)

    def main(self, *args, **more):
        """Run a command; of a mistake of ours print all, and exit with 70."""
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # it was closed from the start
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
            with contextlib.suppress(AttributeError, ValueError):
                getattr(sys, name).reconfigure(errors="backslashreplace")
        try:
            return super().main(*args, **more)
        except Exception as error:
            if isinstance(error, OSError) and hasattr(
                    error.__context__, "exit_code"):
                # a sentence on the command's words that could not be printed
                _forget(sys.stderr)
                sys.exit(error.__context__.exit_code)
            _told(f"{traceback.format_exc()}parity: this is a mistake in "
                  "parity, not of yours; please report it with the lines above "
                  "and the command, on the page where you got the project.")
            sys.exit(BUG)

    def format_commands(self, ctx, formatter):
        """List the commands in groups, in the order in which they stand."""
        groups: dict = {}
        for name, entry in self.entries.items():
            if entry.group:
                groups.setdefault(entry.group, []).append((name, entry.line))
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl(rows)

    def make_context(self, *args, **more):
        """Read the words of the command line; --help prints already here."""
        with _output():
            return super().make_context(*args, **more)

    def invoke(self, ctx):
        """Run the command that was named."""
        with _output():
            return super().invoke(ctx)


@contextlib.contextmanager
def _output():
    """Print all before the end; tell what keeps it from being printed."""
    try:
        with told_plainly():
            try:
                yield
            finally:
                sys.stdout.flush()
    except BrokenPipeError:
        _forget(sys.stdout)
        raise typer.Exit(UNREAD) from None


def _forget(stream):
    """Let what is still to be printed go nowhere; it would fail once more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _told(text):
    """Print to standard error, which may be full: the status tells as well."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _forget(sys.stderr)


@contextlib.contextmanager
def told_plainly():
    """Say an InputError in one sentence on standard error and exit with 2.

    So it does with what the machine lacks: memory, and room on the disk.
    """
    try:
        yield
    except InputError as error:
        said(str(error))
    except EOFError:
        said("standard input ended early; give the rest.")
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename!r} "
        if error.errno in FULL:
            if not name:
                _forget(sys.stdout)
            said(f"{name or 'the output '}cannot be written "
                 f"({error.strerror}); make room, or choose another disk.")
        if error.errno in BROKEN:
            said(f"{name or 'a file '}cannot be read or written "
                 f"({error.strerror}); its disk fails: choose another path.")
        if not name or error.errno not in REFUSED:
            raise
        said(f"{name}cannot be used ({error.strerror}); choose another path.")
    except Exception as error:
        words = out_of_memory.message(error, ports.packages())
        if not words:
            raise
        said(words)


def said(text):
    """Print a sentence on a user's mistake, and exit with 2.

    It is one line, but for a terminal that has no room for it.
    """
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST // 2]} … {text[-LONGEST // 2:]}"
    from parity.render import terminal
    _told(terminal.filled(f"parity: {text}", sys.stderr))
    raise typer.Exit(USAGE) from None
