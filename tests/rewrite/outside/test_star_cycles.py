"""Modules that star-import one another: names are followed through each once."""

from __future__ import annotations

from tests.rewrite.projects import LINEN, dense, outcomes, rewrite_in_form

COUNT = 24


def test_many_modules_that_star_import_one_another_are_read_once() -> None:
    stars = "".join(f"from m{number} import *\n" for number in range(COUNT))
    files = {f"m{number}.py": f"{stars}{LINEN}{dense(f'Layer{number}')}" for number in range(COUNT)}
    files["main.py"] = f"{stars}\n\ndef run(x):\n    return [Layer0(), Layer1(), unknown(x)]\n"
    result = rewrite_in_form(files, "auto")
    assert len(result.classes) == COUNT
    assert all(one.form is not None for one in result.classes), outcomes(result)
