"""How a command that compares ports ends: what it prints and writes."""

import sys

import typer

from parity_io.files import write_json
from parity import ports
from parity.render import terminal


def finish(out, report, names, json_file, html_file=None):
    """Print how a run ended, write its files and exit with its status."""
    out.print()
    terminal.print_environment(out, report.environment)
    out.print()
    terminal.print_divergences(out, report)
    findings = causes(report)
    for place, finding in enumerate(findings):
        words = "Cause" if place == 0 else "And once that is allowed for"
        out.print(f"{words}: {finding.cause} ({finding.case}, "
                  f"{finding.step}).")
    terminal.print_verdict(out, report)
    if json_file:
        write_json(json_file, report.as_json())
    if html_file:
        from parity.render import report_page
        report_page.write(html_file, report, names, findings)
    raise typer.Exit(report.status)


def causes(report):
    """Which known faults compute what the first to diverge computed.

    They are looked for at the first row of which any are known. A port that
    failed has its traceback, and may do anything if it is asked.
    """
    from parity.check.workers import words_of
    failed = {failure.port for failure in report.failures}
    first: dict = {}
    for row, port, _ in report.divergences():
        if port not in failed:
            first.setdefault((port, row.preset, row.case, row.dtype, row.form),
                             (row, port))
    from parity.diagnosis import check_row
    for row, port in first.values():
        if not (diagnosis := check_row.diagnosis_of_row(row)):
            continue
        try:
            return diagnosis.findings(ports.ready(port, form=row.form))
        except Exception as error:  # of a port that also fails at this
            print(f"parity: no cause was looked for: {words_of(error)}.",
                  file=sys.stderr)
            break
    return []
