"""``parity compare --train N``: two training runs, step by step."""

import functools

import typer

from parity_io.errors import InputError
from parity_io.files import write_json, write_whole
from parity.commands.scripts import running, script_result


def compare_trainings(a, b, steps, exact, html, json_file, others):
    """Compare, print the card, write what is asked for, and exit.

    Args:
        a, b: SCRIPT.py:FUNCTION of each side.
        steps: how many steps are taken.
        exact: whether both are trained in float64.
        html, json_file: files to write, or None.
        others: {option: value} of what cannot be asked for beside it.
    """
    from parity.render import comparison_page, terminal
    from parity.render.comparison import print_card
    from parity.training.diff_training import diff_training
    for option, value in others.items():
        if value:
            raise InputError(
                f"{option} is not for --train; leave out one of the two.")
    if steps < 1:
        raise InputError(
            f"--train is {steps}; give how many steps are taken, 1 or more.")

    def make(path):
        with running(str(path)):
            return script_result(path)
    made = diff_training(functools.partial(make, a),
                         functools.partial(make, b), steps, exact)
    print_card(terminal.console(), made.card())
    if html:
        write_whole(html, comparison_page.training_as_html(made))
    if json_file:
        write_json(json_file, made.as_json())
    raise typer.Exit(made.status)
