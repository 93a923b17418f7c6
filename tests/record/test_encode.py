"""What of a value is written down."""

from __future__ import annotations

from typing import Any

import pytest
from flax.core import freeze

from nnx_migrate.record.encode import Encoder
from nnx_migrate.record.source_files import SourceFiles


def never(_: str) -> bool:
    return False


@pytest.mark.parametrize("wrap", [dict, freeze])
def test_names_under_which_the_code_gives_arguments_may_be_keys(wrap: Any) -> None:
    encoder = Encoder(never, never, {"heads"}.__contains__)
    assert encoder(wrap({"heads": 8})) == {"$": "dict", "items": [["heads", 8]]}
    assert encoder(wrap({"heads": 8, "secret": 1}))["$"] == "opaque"


def test_a_file_tells_the_names_of_its_arguments(tmp_path: Any) -> None:
    files = SourceFiles()
    file = tmp_path / "code.py"
    file.write_text("held = dict(heads=8, **{'secret': 1})\nother.name = 2\n")
    assert files.file(str(file)) is not None
    assert [files.has_keyword(one) for one in ("heads", "secret", "name", "held")] == [
        *(True, False, False, False)
    ]


identity = lambda x: x


def test_a_lambda_is_known_by_the_name_that_its_module_gives_it() -> None:
    encoder = Encoder(never, never, never)
    assert encoder(identity) == {"$": "name", "module": __name__, "name": "identity"}
    assert encoder(lambda x: x)["$"] == "opaque"
