"""Classes that the ``__getattr__`` of a module gives are lazy: no binding shows which they are."""

import pytest

from tests.rewrite.projects import LINEN, dense
from tests.rewrite.test_forms import auto, reason, said

LATE = LINEN + dense("A") + dense("B")
PLAIN = (
    "import importlib\n\n\n"
    "def __getattr__(name):\n"
    "    if name == 'A':\n        return importlib.import_module('lib.late').A\n"
    "    raise AttributeError(name)\n"
)
TABLE = (
    "import importlib\n\n_WHERE = {'A': '.late'}\n__all__ = ['A', 'B']\n\n\n"
    "def __getattr__(name):\n"
    "    return getattr(importlib.import_module(_WHERE[name], __name__), name)\n"
)
MADE = "from .hooks import attach\n\n__getattr__ = attach('lib', {'A': 'late'})\n"
HOOKS = (
    "import importlib\n\n\ndef attach(package, names):\n    def get(name):\n"
    "        return getattr(importlib.import_module(package + '.' + names[name]), name)\n"
    "    return get\n"
)
OLD = (
    "import importlib\n\n\ndef __getattr__(name):\n    from .late import A\n\n"
    "    return {'Old': A}[name]\n"
)

GIVEN = {
    "an attribute": (PLAIN, "import lib\n\nmodel = lib.A()\n"),
    "an import": (PLAIN, "from lib import A\n\nmodel = A()\n"),
    "an import by another name": (TABLE, "from lib import A as Net\n\nmodel = Net()\n"),
    "a star": (TABLE, "from lib import *\n\nmodel = A()\n"),
    "in a function": (TABLE, "def main(k, x):\n    import lib\n\n    return lib.A().init(k, x)\n"),
    "a hook that a function makes": (MADE, "import lib\n\nmodel = lib.A()\n"),
    "an old name": (OLD, "import lib\n\nmodel = lib.Old()\n"),
}


@pytest.mark.parametrize(("package", "main"), GIVEN.values(), ids=GIVEN)
def test_a_class_that_a_hook_gives_is_lazy(package: str, main: str) -> None:
    files = {
        "lib/__init__.py": package,
        "lib/late.py": LATE,
        "lib/hooks.py": HOOKS,
        "main.py": main,
    }
    result = auto(files)
    assert said(result) == {"lib.late.A": "lazy", "lib.late.B": "explicit"}
    assert "__getattr__" in reason(result, "lib.late.A")


# The package has a hook, but what is read of it is there, or no class.
APART = {
    "a name that the package binds": (
        "from .late import A\n\n\ndef __getattr__(name):\n    raise AttributeError(name)\n",
        "from lib import A\n\nmodel = A()\n",
    ),
    "a module": (
        PLAIN.replace("late').A", "other').C"),
        "import lib.late\n\nmodel = lib.late.A()\n",
    ),
    "another name": (
        "VERSION = '1'\n\n\ndef __getattr__(name):\n    return VERSION if name == 'v' else None\n",
        "import lib\nfrom lib.late import A\n\nprint(lib.v)\nmodel = A()\n",
    ),
}


@pytest.mark.parametrize(("package", "main"), APART.values(), ids=APART)
def test_a_class_that_no_hook_gives_stays_explicit(package: str, main: str) -> None:
    files = {"lib/__init__.py": package, "lib/late.py": LATE, "main.py": main}
    assert said(auto(files)) == {"lib.late.A": "explicit", "lib.late.B": "explicit"}
