"""What code reads from a table of another file may be any class that this is filled with."""

import pytest

from tests.rewrite.projects import LINEN, dense
from tests.rewrite.test_forms import auto, said

REGISTRY = (
    "REG = {}\n\n\n"
    "def register(make):\n    REG[make.__name__] = make\n    return make\n\n\n"
    "def add(name, make):\n    REG[name] = make\n\n\n"
    "def create(name):\n    return REG[name]()\n"
)
OBJECT = (
    "class Registry:\n    def __init__(self):\n        self.items = {}\n\n"
    "    def add(self, name):\n        def put(make):\n            self.items[name] = make\n"
    "            return make\n        return put\n\n\n"
    "MODELS = Registry()\n\n\n"
    "def create(name):\n    return MODELS.items[name]()\n"
)
CLASS = (
    "class Models:\n    known = {}\n\n    @classmethod\n    def add(cls, make):\n"
    "        cls.known[make.__name__] = make\n        return make\n\n\n"
    "def create(name):\n    return Models.known[name]()\n"
)
SET = (
    "CURRENT = None\n\n\n"
    "def use(make):\n    global CURRENT\n    CURRENT = make\n    return make\n\n\n"
    "def create(name):\n    return CURRENT()\n"
)
SHARED = (
    "class Models:\n    known = {}\n\n    def add(self, make):\n"
    "        self.known[make.__name__] = make\n        return make\n\n\n"
    "def create(name):\n    return Models.known[name]()\n"
)
MAKE = "def make():\n    return A()\n"
LOOKING = (
    "import sys\nimport models\nfrom registry import create\n\n\n"
    "def main(v, x):\n    model = create(sys.argv[1])\n"
    "    return model.apply(v, x, capture_intermediates=True)\n"
)

FILLED = {
    "a decorator": (REGISTRY, "from registry import register\n", f"@register\n{MAKE}"),
    "a decorator by another name": (
        REGISTRY,
        "from registry import register as known\n",
        f"@known\n{MAKE}",
    ),
    "a decorator of a wrapper": (
        REGISTRY + "\n\ndef named(name):\n    return lambda make: add(name, make)\n",
        "import registry\n",
        f"@registry.named('a')\n{MAKE}",
    ),
    "a call": (REGISTRY, "from registry import add\n", f"{MAKE}\n\nadd('a', make)\n"),
    "a call in a loop": (
        REGISTRY,
        "from registry import register\n",
        f"{MAKE}\n\ndef fill():\n    for one in (make,):\n        register(one)\n\n\nfill()\n",
    ),
    "an item": (REGISTRY, "import registry\n", "registry.REG['a'] = lambda: A()\n"),
    "an item of a local name": (
        REGISTRY,
        "import registry\n",
        f"{MAKE}\n\ndef fill():\n    table = registry.REG\n    table['a'] = make\n\n\nfill()\n",
    ),
    "an object's decorator": (OBJECT, "from registry import MODELS\n", f"@MODELS.add('a')\n{MAKE}"),
    "an object's method": (
        OBJECT,
        "from registry import MODELS\n",
        f"{MAKE}\n\nMODELS.add('a')(make)\n",
    ),
    "a class's decorator": (CLASS, "from registry import Models\n", f"@Models.add\n{MAKE}"),
    "a class's attribute": (SHARED, "from registry import Models\n", f"@Models().add\n{MAKE}"),
    "a global": (SET, "import registry\n", f"{MAKE}\n\nregistry.CURRENT = make\n"),
    "a function's global": (SET, "from registry import use\n", f"@use\n{MAKE}"),
    "a table that is given": (
        REGISTRY + "\n\ndef add_to(table, make):\n    table[make.__name__] = make\n",
        "from registry import REG, add_to\n",
        f"{MAKE}\n\nadd_to(REG, make)\n",
    ),
    "a table that is returned": (
        REGISTRY + "\n\ndef table():\n    found = REG\n    return found\n",
        "import registry\n",
        f"{MAKE}\n\nregistry.table()['a'] = make\n",
    ),
    "a table in a table": (
        REGISTRY + "\n\nTABLES = {'all': REG}\n",
        "from registry import TABLES\n",
        f"{MAKE}\n\nTABLES['all']['a'] = make\n",
    ),
    "a loop over tables": (
        REGISTRY,
        "from registry import REG\n",
        f"{MAKE}\n\nfor table in (REG, {{}}):\n    table['a'] = make\n",
    ),
    "a function by a global": (
        REGISTRY + "\n\nknown = register\n",
        "from registry import known\n",
        f"@known\n{MAKE}",
    ),
    "a method by a global": (
        OBJECT + "\n\nknown = MODELS.add\n",
        "from registry import known\n",
        f"@known('a')\n{MAKE}",
    ),
    "a function of a block": (
        REGISTRY + "\n\nif REG is not None:\n    def known(make):\n        REG['a'] = make\n"
        "        return make\n",
        "from registry import known\n",
        f"@known\n{MAKE}",
    ),
    "a partial function": (
        "import functools\n\n" + REGISTRY + "\n\nknown = functools.partial(add, 'a')\n",
        "from registry import known\n",
        f"{MAKE}\n\nknown(make)\n",
    ),
    "a function that gives an object what it is given": (
        OBJECT + "\n\ndef known(make):\n    MODELS.add('a')(make)\n    return make\n",
        "from registry import known\n",
        f"@known\n{MAKE}",
    ),
}


@pytest.mark.parametrize("parts", FILLED.values(), ids=FILLED)
def test_a_class_that_another_file_puts_into_a_table_is_met_by_who_reads_it(
    parts: tuple[str, str, str],
) -> None:
    registry, imports, fills = parts
    models = LINEN.replace("\n\n\n", f"\n{imports}\n\n") + dense("A") + fills
    files = {"registry.py": registry, "models.py": models, "train.py": LOOKING}
    assert said(auto(files)) == {"models.A": "lazy"}


# Both use the same file, but nothing that one puts there is the other's.
APART = {
    "a cache": "_KEPT = {}\n\n\ndef kept(n):\n    _KEPT[n] = str(n)\n    return _KEPT[n]\n",
    "a log": (
        "class Log:\n    def __init__(self):\n        self.lines = []\n\n"
        "    def put(self, line):\n        self.lines.append(line)\n\n\n"
        "LOG = Log()\n\n\ndef kept(n):\n    LOG.put(str(n))\n    return n\n"
    ),
    "what a function is given": (
        "def kept(n):\n    marked(n)\n    return n\n\n\n"
        "def marked(n):\n    n.kept = kept\n    n.marks['a'] = marked\n    return n\n"
    ),
    "an object of its own": (
        "class Kept:\n    pass\n\n\n"
        "def kept(n):\n    found = Kept()\n    found.kept = kept\n    found.made = n\n    return n\n"
    ),
}


@pytest.mark.parametrize("shared", APART.values(), ids=APART)
def test_programs_that_share_a_file_are_apart(shared: str) -> None:
    files = {
        "shared.py": shared,
        "one.py": LINEN.replace("\n\n\n", "\nfrom shared import kept\n\n\n")
        + dense("A")
        + "def main(v, x, n):\n    return A().apply(v, kept(x))\n",
        "two.py": LINEN.replace("\n\n\n", "\nfrom shared import kept\n\n\n")
        + dense("B")
        + "def main(v, x, n):\n"
        + "    return B().apply(v, kept(n), capture_intermediates=True)\n",
    }
    assert said(auto(files)) == {"one.A": "explicit", "two.B": "lazy"}


# Each gives the other's file nothing that it reads.
BESIDE = {
    "a library's decorator by another name": (
        "import functools\nimport jax\n\nstep = functools.partial(jax.jit, static_argnames='n')\n",
        "from shared import step\n",
        "@step\n",
        "@step\n",
    ),
    "another table": (
        (
            "REG = {}\nOTHER = {}\n\n\n"
            "def known(make):\n    REG[make.__name__] = make\n    return make\n\n\n"
            "def other(make):\n    OTHER[make.__name__] = make\n    return make\n"
        ),
        "from shared import REG, OTHER, known, other\n",
        "@known\n",
        "@other\n",
    ),
    "a decorator that sets an attribute": (
        "def marked(make):\n    make.known = True\n    make.itself = make\n    return make\n",
        "from shared import marked\n",
        "@marked\n",
        "@marked\n",
    ),
    "a number": (
        "SIZES = {}\n",
        "from shared import SIZES\n",
        "SIZES['a'] = 3\n\n\n",
        "SIZES['b'] = 4\n\n\n",
    ),
}


@pytest.mark.parametrize("parts", BESIDE.values(), ids=BESIDE)
def test_programs_that_give_another_file_nothing_for_each_other_are_apart(
    parts: tuple[str, str, str, str],
) -> None:
    shared, imports, one, two = parts
    files = {
        "shared.py": shared,
        "one.py": LINEN.replace("\n\n\n", f"\n{imports}\n\n")
        + dense("A")
        + f"{one}def main(v, x, n):\n    return A().apply(v, x)\n",
        "two.py": LINEN.replace("\n\n\n", f"\n{imports}\n\n")
        + dense("B")
        + f"{two}def main(v, x, n):\n    return B().apply(v, x, capture_intermediates=True)\n",
    }
    assert said(auto(files)) == {"one.A": "explicit", "two.B": "lazy"}
