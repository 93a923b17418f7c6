"""Sizes do not come from a global that code of the project may bind anew or change."""

import pytest

from tests.rewrite.projects import LINEN, rewrite, texts

GAIN = (
    "class Gain(nn.Module):\n"
    "    @nn.compact\n"
    "    def __call__(self, x):\n"
    "        return x * self.param('gain', nn.initializers.ones, (x.shape[-1],))\n\n\n"
)
CONFIG = (
    "import dataclasses\nimport sys\n\nHIDDEN = 5\nSIZES = {'a': 5}\nWIDTHS = [5]\n\n\n"
    "@dataclasses.dataclass\nclass Config:\n    hidden: int = 5\n\n"
    "    def load(self, hidden):\n        self.hidden = hidden\n\n\n"
    "class Sizes:\n    hidden = 5\n\n\n"
    "CFG = Config(hidden=5)\n\n\ndef width():\n    return 5\n\n\ndef get():\n    return CFG\n"
)


def written(size: str, main: str) -> str:
    """What becomes of a class with a layer of that size beside the file ``main``."""
    model = (
        f"class A(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        f"        return Gain()(nn.Dense({size})(x))\n\n\n"
    )
    nets = LINEN.replace("\n\n\n", "\nimport config\n\n\n") + GAIN + model
    files = {"config.py": CONFIG, "nets.py": nets, "main.py": main}
    return texts(rewrite(files), files)["nets.py"]


IMPORTS = "import sys\n\nimport config\n\n\n"
N = "int(sys.argv[1])"
CHANGING = {
    "an attribute of the module": ("config.HIDDEN", f"config.HIDDEN = {N}\n"),
    "an attribute of the module by an alias": ("config.HIDDEN", f"c = config\nc.HIDDEN = {N}\n"),
    "in a function": ("config.HIDDEN", f"def main():\n    config.HIDDEN = {N}\n"),
    "in a function that is given the module": (
        "config.HIDDEN",
        f"def put(lib):\n    lib.HIDDEN = {N}\n\n\nput(config)\n",
    ),
    "setattr": ("config.HIDDEN", f"setattr(config, 'HIDDEN', {N})\n"),
    "setattr of any name": ("config.HIDDEN", f"setattr(config, sys.argv[1], {N})\n"),
    "sys.modules": ("config.HIDDEN", f"sys.modules['config'].HIDDEN = {N}\n"),
    "the namespace": ("config.HIDDEN", f"vars(config).update(HIDDEN={N})\n"),
    "an entry of the namespace": ("config.HIDDEN", f"config.__dict__['HIDDEN'] = {N}\n"),
    "a fixture of pytest": (
        "config.HIDDEN",
        "def test(monkeypatch):\n    monkeypatch.setattr('config.HIDDEN', 3)\n",
    ),
    "code in a string": ("config.HIDDEN", "exec('config.HIDDEN = 3')\n"),
    "a function that is replaced": ("config.width()", "config.width = lambda: 3\n"),
    "an entry": ("config.SIZES['a']", f"config.SIZES['a'] = {N}\n"),
    "update": ("config.SIZES['a']", f"config.SIZES.update(a={N})\n"),
    "update of a local name": (
        "config.SIZES['a']",
        f"def main():\n    sizes = config.SIZES\n    sizes.update(a={N})\n",
    ),
    "an entry that another function sets": (
        "config.SIZES['a']",
        f"def put(table, value):\n    table['a'] = value\n\n\nput(config.SIZES, {N})\n",
    ),
    "an entry of what an object holds": (
        "config.SIZES['a']",
        (
            "class App:\n    def __init__(self, sizes):\n        self.sizes = sizes\n\n"
            "    def put(self, n):\n        self.sizes['a'] = n\n\n\nApp(config.SIZES).put(3)\n"
        ),
    ),
    "append": ("config.WIDTHS[-1]", f"config.WIDTHS.append({N})\n"),
    "an attribute of an object": ("config.CFG.hidden", f"config.CFG.hidden = {N}\n"),
    "a method of an object": ("config.CFG.hidden", f"config.CFG.load({N})\n"),
    "an object that is replaced": ("config.CFG.hidden", f"config.CFG = config.Config({N})\n"),
    "an object that a function gives": (
        "config.CFG.hidden",
        f"cfg = config.get()\ncfg.hidden = {N}\n",
    ),
    "an attribute of a class": ("config.Sizes.hidden", f"config.Sizes.hidden = {N}\n"),
}


@pytest.mark.parametrize(("size", "main"), CHANGING.values(), ids=CHANGING)
def test_a_global_that_may_change_is_read_and_not_written_out(size: str, main: str) -> None:
    text = written(size, IMPORTS + main)
    assert "Gain(in_features=" in text
    assert "in_features=5" not in text


STAYING = {
    "nothing": ("config.HIDDEN", ""),
    "another name": ("config.HIDDEN", f"config.WIDTHS = {N}\n"),
    "a local of that name": ("config.HIDDEN", f"def main(config):\n    config.HIDDEN = {N}\n"),
    "an object made with it": ("config.HIDDEN", "app = config.Config()\napp.hidden = 3\n"),
    "an array of that size": (
        "config.HIDDEN",
        "import numpy as np\n\ntable = np.zeros(config.HIDDEN)\ntable[0] = 3\n",
    ),
    "a copy": (
        "config.SIZES['a']",
        "def main():\n    sizes = dict(config.SIZES)\n    sizes['a'] = 3\n",
    ),
    "a look at an entry": ("config.SIZES['a']", "print(config.SIZES.get('a'))\n"),
    "a function that reads a dict": (
        "config.SIZES['a']",
        (
            "def show(table):\n    found = {}\n    found['a'] = table['a']\n    return found\n\n\n"
            "show(config.SIZES)\n"
        ),
    ),
    "an object of the class": ("config.CFG.hidden", f"config.Config().load({N})\n"),
}


@pytest.mark.parametrize(("size", "main"), STAYING.values(), ids=STAYING)
def test_a_global_that_stays_gives_sizes(size: str, main: str) -> None:
    assert "Gain(in_features=5" in written(size, IMPORTS + main)


def test_a_dict_that_its_own_file_updates_from_a_file_gives_no_size() -> None:
    source = LINEN + "C = dict(hidden=5)\nC.update(load())\n\n\n" + GAIN
    source += (
        "class A(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return Gain()(nn.Dense(C['hidden'])(x))\n"
    )
    files = {"m.py": source}
    assert "in_features=5" not in texts(rewrite(files), files)["m.py"]
