import pytest

from benchmarks.corpus.rewriting import last_line, within_file


@pytest.mark.parametrize(
    ("name", "path", "inside"),
    [
        ("models.Block", "models.py", "Block"),
        ("pkg.sub.models.Block.Inner", "pkg/sub/models.py", "Block.Inner"),
        ("pkg.Block", "pkg/__init__.py", "Block"),
        ("models.Block", "src/models.py", "Block"),
        ("models.make.<locals>.Block", "models.py", "make.<locals>.Block"),
    ],
)
def test_a_qualified_name_is_split_at_its_module(name: str, path: str, inside: str) -> None:
    assert within_file(name, path) == inside


def test_the_last_line_of_an_error_skips_blank_ones() -> None:
    assert last_line("first\n\n  ValueError: no  \n\n") == "ValueError: no"
    assert last_line("\n") == "no message"
