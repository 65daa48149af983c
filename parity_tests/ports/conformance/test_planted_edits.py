"""Each planted edit is noticed by the test that is named beside it."""

import pytest

from parity_tests.support.edits import outcome
from parity_tests.support.engines import usable
from parity_tests.support.planted_edits import EDITS

FOLDER = "parity_tests/ports/conformance"


@pytest.mark.long(24)
@pytest.mark.parametrize("file, old, new, test", EDITS)
def test_a_planted_edit_is_noticed(file, old, new, test):
    port = file.partition("/")[0].rpartition("_")[2]
    form = "fast" if "/fast/" in file else "readable"
    usable(port, form)
    if "Packed" in old or "self.given" in old:
        pytest.importorskip("impl_torch.fast.linear").HAS_ONEDNN or (
            pytest.skip("not checked: oneDNN cannot be asked here"))
    module, name = test.split("::")
    status, said = outcome(
        file, old, new, f"{FOLDER}/test_{module}.py::test_{name}", "-x",
        "-k", f"{port}-{form}", "--port", port)
    assert (status, f"FAILED {FOLDER}/test_{module}.py::test_{name}" in said
            ) == (1, True), said[-3000:]
