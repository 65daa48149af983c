"""The core: how long the paper's model is, as the README says."""

from parity_tests.support.places import MODEL, PORTS, REFERENCE, ROOT

TITLES = {"torch": "PyTorch", "keras": "Keras", "jax": "NNX", "mlx": "MLX"}


def lines(folder):
    """How many lines of a form's model are not blank, docstrings included."""
    return sum(1 for name in MODEL for line in (
        folder / f"{name}.py").read_text(encoding="utf-8").splitlines()
        if line.strip())


def sentence():
    """What the README says of it, made anew."""
    ports = [f"{lines(folder)} in {TITLES[name]}"
             for name, folder in PORTS.items()]
    return (f"It takes {lines(REFERENCE)} lines in NumPy, its backward "
            f"included, {', '.join(ports[:-1])} and {ports[-1]}, docstrings "
            "counted and blank lines not.")


def test_the_readme_says_how_long_the_model_is():
    """If it does not, write this sentence."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert sentence() in text


def test_the_readme_leads_through_the_files_that_are_counted():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in MODEL:
        assert f"`{name}.py`" in text, name
