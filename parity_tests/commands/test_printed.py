"""docs/commands.md: what stands below a command is what it prints."""

import pytest

from parity_tests.support import printed
from parity_tests.support.engines import usable


@pytest.mark.long(60)
def test_the_page_shows_what_its_commands_print():
    pytest.importorskip("jupytext")
    for name in ("torch", "jax"):
        usable(name)
    page = printed.PAGE.read_text(encoding="utf-8")
    with printed.folder():
        assert printed.plain(printed.written(page)) == printed.plain(page)
