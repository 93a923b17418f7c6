"""Modules that code imports by computed names: which classes of them that code may take."""

import pytest

from nnx_migrate.model import RewriteResult
from nnx_migrate.source.settings import Settings, SettingsError
from tests.rewrite.projects import LINEN, dense
from tests.rewrite.test_forms import auto, code, reason, said

HEAD = "import importlib\nimport sys\n\n"
TABLE = "TABLE = {'one': ('m', 'create')}\n\n\n"

# None of it takes the class A of the file m.
HARMLESS = {
    "its path": "def path(cls):\n    return sys.modules[cls.__module__].__file__\n",
    "another name": "def f(name):\n    return importlib.import_module(name).create()\n",
    "another name under a name": (
        "def f(name):\n    lib = importlib.import_module(name)\n    return lib.create(lib.other)\n"
    ),
    "a file that is run for its side effects": (
        "import importlib.util\n\n\ndef f(spec):\n"
        "    lib = importlib.util.module_from_spec(spec)\n    sys.modules[spec.name] = lib\n"
        "    spec.loader.exec_module(lib)\n    return lib.create()\n"
    ),
    "a file's own global": (
        "import os\n\nlib = importlib.import_module(os.environ['LIB'])\n\n\ndef f():\n    return lib.create()\n"
    ),
    "for its side effects": "def f(name):\n    importlib.import_module(name)\n",
    "whether it is there": "def f(name):\n    return importlib.import_module(name) is not None\n",
    "another package": "def f(name):\n    return importlib.import_module(f'other.{name}')\n",
    "names of a table": (
        TABLE + "def f(key):\n    module, name = TABLE[key]\n"
        "    return getattr(importlib.import_module(module), name)\n"
    ),
    "names that are bound anew": (
        TABLE + "def f(key):\n    module, name = TABLE[key]\n"
        "    module = importlib.import_module(module)\n    name = getattr(module, name)\n"
        "    return name()\n"
    ),
    "a function's result": (
        "def load(name):\n    return importlib.import_module(name)\n\n\n"
        "def f(name):\n    return load(name).create()\n"
    ),
    "a package's hook": "def __getattr__(name):\n    return getattr(importlib.import_module(name), name)\n",
    "what functions of the project do not use": (
        "def look(lib, *, other=None):\n    return dir(lib), other.__name__\n\n\n"
        "def f(name):\n    lib = sys.modules[name]\n    return look(lib, other=lib)\n"
    ),
    "the namespace of a class": (
        "def f(cls, text):\n    exec(text, sys.modules[cls.__module__].__dict__.copy())\n"
    ),
    "names that are hidden": (
        "def f(name, parts):\n    lib = sys.modules[name]\n    for part in parts:\n"
        "        setattr(lib, '_' + part, getattr(lib, part))\n        delattr(lib, part)\n"
    ),
    "where names come from": (
        "for name in ['f', 'g']:\n    getattr(sys.modules[__name__], name).__module__ = __name__\n"
    ),
    "where names of a list come from": (
        "from m import A, create\n\n__all__ = ['A', 'create']\n\nfor name in __all__:\n    if name != 'create':\n"
        "        getattr(sys.modules[__name__], name).__module__ = __name__\n"
    ),
    "functions that are called as a package's": (
        "import hydra\n\n\ndef instantiate(config):\n    return config.name\n\n\n"
        "@hydra.main(config_path='conf')\ndef f(config):\n    return instantiate(config)\n"
    ),
    "a module of its package, kept for names that are written": (
        "def f(kept, name):\n    kept[name] = importlib.import_module('.' + name, __package__)\n"
    ),
    "where the text of a member is": (
        "import inspect\n\n\ndef f(info):\n    found = sys.modules.get(info['module'])\n"
        "    for part in info['name'].split('.'):\n        found = getattr(found, part)\n"
        "    found = inspect.unwrap(found)\n"
        "    return inspect.getsourcefile(found), inspect.getsourcelines(inspect.unwrap(found))\n"
    ),
    "where the function of a property, or a decorated one, is": (
        "import inspect\nimport operator\n\n\ndef f(info):\n"
        "    found = operator.attrgetter(info['name'])(sys.modules.get(info['module']))\n"
        "    if isinstance(found, property):\n        found = found.fget\n"
        "    while hasattr(found, '__wrapped__'):\n        found = found.__wrapped__\n"
        "    return inspect.getsourcefile(found)\n"
    ),
    "where it is, by other names of what tells": (
        "import inspect\nfrom inspect import getsourcelines as lines\n\n\ndef f(module, name):\n"
        "    found: object = sys.modules[module]\n    found = getattr(found, name)\n"
        "    try:\n        unwrap = inspect.unwrap\n    except AttributeError:\n        pass\n"
        "    else:\n        found = unwrap(found)\n    return lines(found)\n"
    ),
    "the version of a package": (
        "from importlib.metadata import version\n\n\ndef f(name):\n    return version(name)\n"
    ),
    "what describes a class of any file": (
        "def f(module, name):\n    cls = getattr(importlib.import_module(module), name)\n"
        "    cls.__doc__ = (cls.__doc__ or '') + cls.__qualname__\n"
    ),
}

BUILDS = "    return vars({})[kind]()\n"

# Each may be any module but the file m, and any name is taken of it.
OTHER_MODULES = {
    "a list in a loop": (
        "def f(kind):\n    for name in ['n', 'o']:\n        getattr(importlib.import_module(name), kind)()\n"
    ),
    "a table": (
        "NAMES = {'a': 'n', 'b': 'o.p'}\n\n\ndef f(name, kind):\n"
        + BUILDS.format("importlib.import_module(NAMES[name])")
    ),
    "a table with what else there is": (
        "NAMES = {'a': 'n'}\n\n\ndef f(name, kind):\n"
        + BUILDS.format("importlib.import_module(NAMES.get(name, 'o'))")
    ),
    "a package in a name": (
        "PACKAGE = 'zoo.'\n\n\ndef f(name, kind):\n"
        + BUILDS.format("importlib.import_module(PACKAGE + name)")
    ),
    "one of two packages": (
        "def f(name, kind, old):\n    package = 'zoo' if old else 'farm'\n"
        + BUILDS.format("importlib.import_module(f'{package}.{name}')")
    ),
    "the end of a name": (
        "def f(name, kind):\n" + BUILDS.format("importlib.import_module(f'{name}.zoo')")
    ),
    "a format": "def f(name, kind):\n" + BUILDS.format("importlib.import_module('zoo.%s' % name)"),
    "another format": (
        "def f(name, kind):\n" + BUILDS.format("importlib.import_module('zoo.{}'.format(name))")
    ),
    "parts that are joined": (
        "def f(name, kind):\n" + BUILDS.format("importlib.import_module('.'.join(['zoo', name]))")
    ),
    "a package that is named": (
        "def f(name, kind):\n"
        + BUILDS.format("importlib.import_module('.' + name, package='zoo.animals')")
    ),
    "by keywords": (
        "def f(name, kind):\n" + BUILDS.format("importlib.import_module(name='zoo.' + name)")
    ),
    "a part of its own name": (
        "def f(name, kind):\n"
        + BUILDS.format("importlib.import_module(__name__.split('.')[0] + '.zoo')")
    ),
    "what all callers give": (
        "def load(name, kind):\n    return getattr(importlib.import_module(name), kind)()\n\n\n"
        "def f(kind):\n    return load('zoo', kind), load(name='farm', kind=kind)\n"
    ),
    "a table of modules and names": (
        "TABLE = {'one': ('zoo', 'A')}\n\n\ndef f(key):\n    module, name = TABLE[key]\n"
        "    return getattr(importlib.import_module(module), name)()\n"
    ),
    "names that a loop has twice": (
        "def f(kind):\n    name = 'zoo'\n    for part in ('a', 'b'):\n        name = name + '.' + part\n"
        + BUILDS.format("importlib.import_module(name + '.animals')")
    ),
}

# Each may be the file m.
ANY_MODULES = {
    "a table with it": (
        "NAMES = {'a': 'n', 'b': 'm'}\n\n\ndef f(name, kind):\n"
        + BUILDS.format("importlib.import_module(NAMES[name])")
    ),
    "a table with something else": (
        "NAMES = {'a': 'n'}\n\n\ndef f(name, kind):\n"
        + BUILDS.format("importlib.import_module(NAMES.get(name, name))")
    ),
    "a table that grows": (
        "NAMES = {'a': 'n'}\n\n\ndef add(name, one):\n    NAMES[name] = one\n\n\ndef f(name, kind):\n"
        + BUILDS.format("importlib.import_module(NAMES[name])")
    ),
    "a table that somebody else gets": (
        "NAMES = {'a': 'n'}\n\n\ndef add(use):\n    use(NAMES)\n\n\ndef f(name, kind):\n"
        + BUILDS.format("importlib.import_module(NAMES[name])")
    ),
    "a name that is imported, or written": (
        "try:\n    from settings import NAME\nexcept ImportError:\n    NAME = 'zoo'\n\n\ndef f(kind):\n"
        + BUILDS.format("importlib.import_module(NAME)")
    ),
    "an end that it has": (
        "def f(name, kind):\n" + BUILDS.format("importlib.import_module(f'{name}m')")
    ),
    "letters": (
        "def f(kind):\n    for name in 'mn':\n        vars(importlib.import_module(name))[kind]()\n"
    ),
    "a name by a keyword": (
        "def f(name, kind):\n" + BUILDS.format("importlib.import_module(name=name)")
    ),
    "unpacked arguments": (
        "def f(given, kind):\n" + BUILDS.format("importlib.import_module(**given)")
    ),
    "a function by another name": (
        "load = importlib.import_module\n\n\ndef f(name, kind):\n" + BUILDS.format("load(name)")
    ),
    "a function that others are given": (
        "def f(names, kind):\n    return [vars(one)[kind]() for one in map(importlib.import_module, names)]\n"
    ),
    "what one caller gives": (
        "def load(name, kind):\n    return vars(importlib.import_module(name))[kind]()\n\n\n"
        "def f(kind):\n    return load('zoo', kind), load('m', kind)\n"
    ),
    "what an unknown caller gives": (
        "def load(name, kind):\n    return vars(importlib.import_module(name))[kind]()\n\n\n"
        "def f(use, kind):\n    return load('zoo', kind), use(load)\n"
    ),
    "what a caller of a caller gives": (
        "def load(name, kind):\n    return vars(importlib.import_module(name))[kind]()\n\n\n"
        "def f(name, kind):\n    return load('zoo', kind), load(name, kind)\n"
    ),
    "what a default gives": (
        "def load(kind, name='m'):\n    return vars(importlib.import_module(name))[kind]()\n\n\n"
        "def f(kind):\n    return load(kind), load(kind, 'zoo')\n"
    ),
    "a package of which a part is known": (
        "KINDS = ['A']\n\n\ndef f(name, kind):\n"
        + BUILDS.format("importlib.import_module('.m', f'zoo.{name}')")
    ),
    "a format with more than names": (
        "def f(name, kind):\n" + BUILDS.format("importlib.import_module('{:>1}'.format(name))")
    ),
    "an element of a name": (
        "def f(kind):\n" + BUILDS.format("importlib.import_module('zoo.m'.rsplit('.', 1)[-1])")
    ),
}

# Each may take the class A of the file m by a computed name: its lazy form.
ASKED = {
    "any name": "def f(module, name):\n    return getattr(importlib.import_module(module), name)()\n",
    "its own name in a string": (
        "def f(name):\n    return getattr(importlib.import_module(name), 'A')()\n"
    ),
    "a table with it": (
        TABLE.replace("create", "A") + "def f(key):\n    module, name = TABLE[key]\n"
        "    return getattr(importlib.import_module(module), name)()\n"
    ),
    "a table that grows": (
        TABLE + "def add(key, name):\n    TABLE[key] = name\n\n\n"
        "def f(key):\n    module, name = TABLE[key]\n"
        "    return getattr(importlib.import_module(module), name)()\n"
    ),
    "a parameter that shadows a table": (
        "name = 'create'\n\n\ndef f(module, name):\n"
        "    return getattr(importlib.import_module(module), name)()\n"
    ),
    "a parameter of a coroutine that shadows a table": (
        "name = 'create'\n\n\nasync def f(module, name):\n"
        "    return getattr(importlib.import_module(module), name)()\n"
    ),
    "a parameter of a lambda that shadows a table": (
        "name = 'create'\n"
        "f = lambda module, name: getattr(importlib.import_module(module), name)()\n"
    ),
    "a parameter of the function around it": (
        "name = 'create'\n\n\ndef f(module, name):\n"
        "    return lambda: getattr(importlib.import_module(module), name)()\n"
    ),
    "handed to a function of the project": (
        "def make(kinds, kind):\n    return getattr(kinds, kind)()\n\n\n"
        "def f(name, kind):\n    return make(kinds=sys.modules[name], kind=kind)\n"
    ),
    "a file's global that it asks": (
        "import os\n\nlib = importlib.import_module(os.environ['LIB'])\n\n\n"
        "def f(kind):\n    return lib.create(), getattr(lib, kind)()\n"
    ),
    "returned to a caller that asks": (
        "def load(name):\n    return importlib.import_module(name)\n\n\n"
        "def f(name, kind):\n    return getattr(load(name), kind)()\n"
    ),
    "from sys.modules": "def f(name, kind):\n    return getattr(sys.modules.get(name), kind)()\n",
    "its own package": (
        "KINDS = ['A']\n\n\ndef f(name, kind):\n"
        "    return getattr(importlib.import_module('.' + name, __package__), kind)()\n"
    ),
    "an import by another name": (
        "from importlib import import_module as load\n\n\n"
        "def f(kind):\n    return getattr(load('m'), kind)()\n"
    ),
    "modules by another name": (
        "from sys import modules as ours\n\n\ndef f(kind):\n    return getattr(ours['m'], kind)()\n"
    ),
    "a file by its path": (
        "import importlib.util as u\n\n\ndef f(path, kind):\n"
        "    spec = u.spec_from_file_location('x', path)\n    lib = u.module_from_spec(spec)\n"
        "    spec.loader.exec_module(lib)\n    return getattr(lib, kind)()\n"
    ),
    "hydra by another name": (
        "import hydra.utils as hu\n\n\ndef f(config):\n    return hu.get_class(config.model)(3)\n"
    ),
    "a fixed name": (
        "def f(kind):\n    lib = importlib.import_module('m')\n    return getattr(lib, kind)()\n"
    ),
}

# Each may take the class A of the file m in another way.
REACHING = {
    "what it may be is set": (
        "def f(module, name):\n    cls = getattr(importlib.import_module(module), name)\n"
        "    cls.width = 3\n    return cls()\n"
    ),
    "what is unwrapped and called": (
        "import inspect\n\n\ndef f(module, name):\n"
        "    return inspect.unwrap(vars(importlib.import_module(module))[name])()\n"
    ),
    "the function of a property is called": (
        "import operator\n\n\ndef f(module, name):\n"
        "    found = operator.attrgetter(name)(importlib.import_module(module))\n"
        "    return found.fget(None)\n"
    ),
    "a local name of what tells, and of what calls": (
        "import inspect\n\n\ndef f(module, name, call):\n"
        "    found = vars(importlib.import_module(module))[name]\n"
        "    unwrap = inspect.unwrap\n    if call:\n        unwrap = call\n    return unwrap(found)\n"
    ),
    "also by its own name": (
        "def f(module, name):\n    lib = importlib.import_module(module)\n"
        "    return getattr(lib, name)() or lib.A()\n"
    ),
    "its own name": "def f(name):\n    return importlib.import_module(name).A()\n",
    "a class that is described and returned": (
        "def f(module, name):\n    cls = getattr(importlib.import_module(module), name)\n"
        "    cls.__doc__ = ''\n    return cls()\n"
    ),
    "names of a list that are described and called": (
        "from m import A, create\n\nfor name in ['A', 'create']:\n    found = getattr(sys.modules[__name__], name)\n"
        "    found.__module__ = __name__\n    found()\n"
    ),
    "an attribute that describes nothing": (
        "from m import A, create\n\nfor name in ['A', 'create']:\n"
        "    getattr(sys.modules[__name__], name).width = 3\n"
    ),
    "handed on": "def f(name, use):\n    return use(importlib.import_module(name))\n",
    "unpacked into a function of the project": (
        "def look(*libs):\n    return libs\n\n\ndef f(name):\n    return look(sys.modules[name])\n"
    ),
    "copied into another module": (
        "def f(name, part, other):\n    setattr(other, part, getattr(sys.modules[name], part))\n"
    ),
    "kept for others": "def f(name, o):\n    o.lib = importlib.import_module(name)\n",
    "a file's global by its name": (
        "import os\n\nlib = importlib.import_module(os.environ['LIB'])\n\n\n"
        "def f(kind):\n    return lib.create(), globals()['lib']\n"
    ),
    "kept by the file": "import os\n\nlib = importlib.import_module(os.environ['LIB'])\n",
    "a function that is handed on": (
        "def load(name):\n    return importlib.import_module(name)\n\n\n"
        "def f(use):\n    return use(load)\n"
    ),
    "everything in it": "def f(name):\n    return vars(importlib.import_module(name))\n",
    "a file that is run": "import runpy\n\n\ndef f(p, n):\n    return runpy.run_path(p)[n]()\n",
    "a path of names": "from pydoc import locate\n\n\ndef f(name):\n    return locate(name)()\n",
    "what a path gives, of which only a method is called": (
        "import pydoc\n\n\ndef f(name, key, x):\n    return pydoc.locate(name).init(key, x)\n"
    ),
    "a configuration of hydra": (
        "from hydra.utils import instantiate\n\n\ndef f(config, key, x):\n"
        "    net = instantiate(config.model)\n    return net.init(key, x)\n"
    ),
    "hydra, handed on": (
        "import hydra\n\n\ndef f(configs):\n    return [*map(hydra.utils.call, configs)]\n"
    ),
    "a file of gin": "import gin\n\n\ndef f(path):\n    gin.parse_config_file(path)\n",
    "a command line": "from jsonargparse import CLI\n\n\ndef f(main):\n    return CLI(main)\n",
    "plugins": (
        "from importlib.metadata import entry_points\n\n\ndef f(group):\n"
        "    return [one.load() for one in entry_points(group=group)]\n"
    ),
    "its attributes": "def f(name, kind):\n    return sys.modules[name].__getattribute__(kind)()\n",
}


def forms(text: str) -> dict[str, str]:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    return said(auto({"m.py": model, "load.py": HEAD + text}))


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_code_that_cannot_take_a_class_leaves_it_explicit(text: str) -> None:
    assert forms(text) == {"m.A": "explicit"}


@pytest.mark.parametrize("text", OTHER_MODULES.values(), ids=OTHER_MODULES)
def test_what_is_known_of_a_name_says_which_modules_it_may_be(text: str) -> None:
    assert forms(text) == {"m.A": "explicit"}


@pytest.mark.parametrize("text", ANY_MODULES.values(), ids=ANY_MODULES)
def test_a_name_that_may_be_the_module_makes_its_classes_lazy(text: str) -> None:
    assert forms(text) == {"m.A": "lazy"}


@pytest.mark.parametrize(
    ("table", "other", "form"),
    [
        ("{'a': 'zoo'}", "import load\n\nload.NAMES['b'] = 'm'\n", "lazy"),
        ("{'a': 'zoo'}", "from load import NAMES\n\nNAMES.update(b='m')\n", "lazy"),
        ("{'a': 'zoo'}", "import load\n\nload.NAMES = {'a': 'm'}\n", "lazy"),
        ("{'a': 'zoo'}", "from load import NAMES as ours\n\nours['a'] = 'm'\n", "lazy"),
        ("{'a': 'zoo'}", "from load import NAMES\n\nprint(len(NAMES), NAMES['a'])\n", "explicit"),
        ("{'a': 'zoo'}", "NAMES = []\nNAMES.append('m')\n", "explicit"),
    ],
)
def test_a_table_may_be_changed_by_another_file(table: str, other: str, form: str) -> None:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    load = f"NAMES = {table}\n\n\ndef f(name, kind):\n" + BUILDS.format(
        "importlib.import_module(NAMES[name])"
    )
    assert said(auto({"m.py": model, "load.py": HEAD + load, "o.py": other})) == {"m.A": form}


@pytest.mark.parametrize(
    ("asked", "form"),
    [
        ("getattr(getattr(importlib.import_module('p'), kind), 'A')()", "lazy"),
        ("getattr(importlib.import_module('p'), kind)()", "explicit"),
        ("getattr(getattr(importlib.import_module('p'), ['m'][0]), 'A')()", "lazy"),
        ("getattr(getattr(importlib.import_module('p'), ['m'][0]), 'B')()", "explicit"),
        ("getattr(__import__('p.' + kind), kind).A()", "lazy"),
        ("[getattr(lib, kind)(), getattr(lib, kind).A()]", "lazy"),
        ("[getattr(lib, kind)(), getattr(lib, kind).B()]", "explicit"),
        ("getattr(__import__('p.' + kind), kind).B()", "explicit"),
        ("__import__('p.m').m.A()", "lazy"),
        ("__import__('p.m').m.B()", "explicit"),
        ("__import__('p.m', fromlist=['x']).A()", "lazy"),
    ],
)
def test_a_computed_name_may_mean_a_module_of_a_package(asked: str, form: str) -> None:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    load = f"{HEAD}def f(kind):\n    lib = importlib.import_module('p')\n    return {asked}\n"
    files = {"p/__init__.py": "", "p/m.py": model, "load.py": load}
    assert said(auto(files)) == {"p.m.A": form}


@pytest.mark.parametrize(
    ("other", "form"),
    [
        ("from load import lib\n\nlib.A()\n", "lazy"),
        ("import load\n\nload.lib.A()\n", "lazy"),
        ("from load import *\n\nlib.A()\n", "lazy"),
        ("lib = 3\n", "explicit"),
    ],
)
def test_a_global_of_one_file_may_be_read_in_another(other: str, form: str) -> None:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    load = f"{HEAD}import os\n\nlib = importlib.import_module(os.environ['LIB'])\nlib.create()\n"
    assert said(auto({"m.py": model, "load.py": load, "o.py": other})) == {"m.A": form}


@pytest.mark.parametrize(("name", "form"), [("create", "lazy"), ("other", "explicit")])
def test_an_import_may_give_a_class_another_name(name: str, form: str) -> None:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    load = f"{HEAD}def f(name):\n    return importlib.import_module(name).{name}()\n"
    files = {"m.py": model, "zoo.py": "from m import A as create\n", "load.py": load}
    assert said(auto(files)) == {"m.A": form}


@pytest.mark.parametrize("part", ["{}.m", "getattr({}, 'm')"])
def test_what_a_computed_name_gives_of_a_package_s_module_is_lazy(part: str) -> None:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    asked = part.format("importlib.import_module('p')")
    load = f"{HEAD}def f(n):\n    return getattr({asked}, n)()\n"
    found = auto({"p/__init__.py": "", "p/m.py": model, "load.py": load})
    assert said(found) == {"p.m.A": "explicit"}
    assert f"as_lazy(getattr({asked}, n))()" in code(found, "load.py")


@pytest.mark.parametrize("part", ["{}.m", "getattr({}, 'm')"])
def test_a_module_may_be_taken_from_its_package(part: str) -> None:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    asked = part.format("importlib.import_module('p')")
    load = f"{HEAD}def f(n):\n    return vars({asked})[n]()\n"
    assert said(auto({"p/__init__.py": "", "p/m.py": model, "load.py": load})) == {"p.m.A": "lazy"}


@pytest.mark.parametrize("text", ASKED.values(), ids=ASKED)
def test_a_class_that_a_computed_name_gives_takes_its_lazy_form(text: str) -> None:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    found = auto({"m.py": model, "load.py": HEAD + text})
    assert said(found) == {"m.A": "explicit"}
    assert "as_lazy(" in code(found, "load.py")


def test_a_computed_name_of_a_package_does_not_keep_what_its_modules_hold_lazy() -> None:
    files = {"p/__init__.py": "", "p/m.py": LINEN + dense("A"), "p/n.py": "from p.m import A\n"}
    load = "import p\n\n\ndef f(config):\n    cls = getattr(p, config.arch)\n    return cls(3), p.n.A\n"
    found = auto({**files, "load.py": load})
    assert said(found) == {"p.m.A": "explicit"}
    assert "cls = as_lazy(getattr(p, config.arch))" in code(found, "load.py")


@pytest.mark.parametrize(
    ("model", "more"),
    [
        (LINEN + dense("A"), "from flax import nnx\n"),
        (
            LINEN + "class A(nn.Module):\n    @nn.compact\n    def __call__(self, x, y):\n"
            "        return nn.Dense(3)(x.nodes) + y\n",
            "",
        ),
    ],
    ids=["the project has NNX modules of its own", "a size that its name does not tell"],
)
def test_a_class_that_nobody_could_tell_or_size_there_is_lazy(model: str, more: str) -> None:
    text = "def f(m, name):\n    return getattr(importlib.import_module(m), name)()\n"
    found = auto({"m.py": model, "load.py": HEAD + more + text})
    assert said(found) == {"m.A": "lazy"}
    assert "as_lazy" not in code(found, "load.py")


@pytest.mark.parametrize("text", REACHING.values(), ids=REACHING)
def test_code_that_may_take_a_class_makes_it_lazy(text: str) -> None:
    assert forms(text) == {"m.A": "lazy"}


# ---- what the project's settings say

HUB = "def load(name, kind):\n    return vars(importlib.import_module(name))[kind]()\n"


def declared(text: str, imports: dict[str, tuple[str, ...]], **more: str) -> RewriteResult:
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    files = {
        "m.py": model,
        "hub.py": HEAD + text,
        **{f"{name}.py": one for name, one in more.items()},
    }
    return auto(files, settings=Settings(imports=imports))


@pytest.mark.parametrize(
    ("imports", "form"),
    [
        ({}, "lazy"),
        ({"hub.load": ()}, "explicit"),
        ({"hub.load": ("hub",)}, "explicit"),
        ({"hub.load": ("m",)}, "lazy"),
        ({"hub.load": ("hub", "[a-z]")}, "lazy"),
    ],
    ids=["nothing", "none of the project's", "another", "its own", "a pattern"],
)
def test_the_settings_say_which_modules_code_imports(
    imports: dict[str, tuple[str, ...]], form: str
) -> None:
    assert said(declared(HUB, imports)) == {"m.A": form}


def test_the_reason_names_the_setting() -> None:
    told = reason(declared(HUB, {}), "m.A")
    assert told.endswith(
        'say which modules it imports: [tool.nnx-migrate.imports] "hub.load" = [...]'
    )
    assert told.startswith("not proven: hub.py:5: ")


def test_the_reason_names_the_settings_for_all_such_imports() -> None:
    two = HUB + HUB.replace("load", "other")
    assert reason(declared(two, {}), "m.A").endswith(
        "say which modules each of these imports: "
        '[tool.nnx-migrate.imports] "hub.load" = [...], "hub.other" = [...]'
    )
    assert said(declared(two, {"hub.load": (), "hub.other": ()})) == {"m.A": "explicit"}


PLACES = {
    "hub.Loader.get": "class Loader:\n    def get(self, n, k):\n        return vars(sys.modules[n])[k]()\n",
    "hub": "import os\n\nlib = importlib.import_module(os.environ['LIB'])\n",
    "hub.f.g": "def f(n):\n    def g(k):\n        return vars(sys.modules.get(n))[k]()\n    return g\n",
}


@pytest.mark.parametrize(("place", "text"), PLACES.items(), ids=PLACES)
def test_a_place_is_the_function_whose_own_text_imports(place: str, text: str) -> None:
    assert said(declared(text, {})) == {"m.A": "lazy"}
    assert f'"{place}" = ' in reason(declared(text, {}), "m.A")
    assert said(declared(text, {place: ()})) == {"m.A": "explicit"}


def test_the_reason_names_the_function_that_a_configuration_is_given() -> None:
    load = (
        "from hydra.utils import instantiate\n\n\ndef f(config):\n    return instantiate(config)\n"
    )
    files = {"m.py": LINEN + dense("A"), "load.py": load}
    assert reason(auto(files), "m.A") == (
        "not proven: load.py:5: hydra.utils.instantiate gives what a name leads to, and the class may be that; "
        'say which modules it imports: [tool.nnx-migrate.imports] "load.f" = [...]'
    )


def test_other_imports_are_not_spoken_of() -> None:
    other = HUB.replace("load", "other")
    assert said(declared(HUB + other, {"hub.load": ()})) == {"m.A": "lazy"}


def test_a_module_that_imports_the_class_counts_too() -> None:
    assert said(declared(HUB, {"hub.load": ("zoo",)}, zoo="from m import A\n")) == {"m.A": "lazy"}


WRONG = {
    "a typo": ({"hub.laod": ()}, "did you mean hub.load?"),
    "a place that is gone": ({"old.thing.of": ()}, "by a name that only the running program knows"),
    "a function without an import": ({"hub.plain": ()}, "did you mean hub."),
    "a name that is read": ({"hub.fixed": ()}, "is read from the code; remove the entry"),
    "a module that is not there": (
        {"hub.load": ("mm.*",)},
        'no module of this project is like "mm.*"',
    ),
}


@pytest.mark.parametrize(("imports", "form"), [({}, "lazy"), ({"hub.patch": ()}, "explicit")])
def test_the_settings_say_that_a_loop_over_all_modules_takes_no_class(
    imports: dict[str, tuple[str, ...]], form: str
) -> None:
    text = "def patch():\n    for one in sys.modules.values():\n        use(vars(one))\n"
    assert said(declared(text, imports)) == {"m.A": form}


@pytest.mark.parametrize(("imports", "problem"), WRONG.values(), ids=WRONG)
def test_settings_that_do_not_fit_the_code_are_errors(
    imports: dict[str, tuple[str, ...]], problem: str
) -> None:
    rest = "def plain():\n    pass\n\n\ndef fixed():\n    return importlib.import_module('m')\n"
    with pytest.raises(SettingsError) as caught:
        declared(f"{HUB}\n\n{rest}", imports)
    assert str(caught.value).startswith("pyproject.toml: [tool.nnx-migrate.imports] ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_is_known_of_places_in_a_broken_file() -> None:
    result = declared("def load(:\n", {"hub.load": ()})
    assert said(result) == {"m.A": "explicit"}
    assert [one.path for one in result.files if one.error] == ["hub.py"]
