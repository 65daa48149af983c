"""A headless Chromium, where there is one."""

import contextlib
import pathlib
import shutil

import pytest

#: What Chromium is called where a system has it.
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextlib.contextmanager
def chromium():
    """A browser of playwright's; the test is not checked without one."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("not checked: playwright is not installed")
    with sync_playwright() as driver:
        path = next(filter(None, map(shutil.which, NAMES)),
                    driver.chromium.executable_path)
        if not pathlib.Path(path).is_file():
            pytest.skip("not checked: there is no Chromium on this machine")
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page that is open, and what it said and asked for.

    Attributes:
        page: playwright's.
        errors: what it wrote on the console as errors, and what it threw.
        requests: the addresses that it asked for.
    """

    def __init__(self, browser, address, width=1400, height=900, **more):
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, **more)
        self.page = self.context.new_page()
        self.errors, self.requests = [], []
        self.page.on("console", lambda message: message.type == "error"
                     and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda each: self.requests.append(each.url))
        self.page.goto(address)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()
