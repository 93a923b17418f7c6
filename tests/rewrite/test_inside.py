"""Explicit classes inside of which code around them reads: what works there, and what does not."""

import pytest

from tests.rewrite.projects import LINEN, looped
from tests.rewrite.test_forms import auto, code, reason, said

NET = (
    "class Part(nn.Module):\n    width: int\n\n    def setup(self):\n"
    "        self.inner = nn.Embed(4, self.width)\n\n"
    "    def __call__(self, x):\n        return self.inner(x)\n\n\n"
    "class Net(nn.Module):\n    width: int = 3\n\n    def setup(self):\n"
    "        self.part = Part(self.width)\n        self.parts = [Part(2), Part(2)]\n"
    "        self.bias = self.param('bias', nn.initializers.zeros, (self.width,))\n"
    "        self.seen = self.variable('seen', 'calls', lambda: 0)\n"
    "        self.half = self.width // 2\n\n"
    "    def __call__(self, x):\n        for part in self.parts:\n            part(x)\n"
    "        return self.part(x) + self.bias[None], self.seen.value, self.half\n\n"
    "    def _get(self):\n        return self.part\n\n"
    "    def turned(self, x):\n        x = x.T\n        y = x\n        x = y.T\n        return x\n\n\n"
)
MODEL = (
    "class Model:\n    kind = Net\n\n    def __init__(self):\n        self.module = self.kind()\n\n"
    "    def run(self, v, x, use):\n        def inside(module, x):\n"
)
APPLIED = "\n        return self.module.apply(v, x, method=inside)\n"

CARRIED = {
    "a call": "return module.part(x)",
    "a call under a name": "part = module.part\n            return part(x)",
    "a private method": "return module._get()(x)",
    "a private method under a name": "part = module._get()\n            return part(x)",
    "a method that names its result anew": "return module.turned(x).T",
    "a parameter": "return module.part(x) + module.bias.T",
    "a value": "return x if module.half > 1 else -x",
    "a value handed on": "return use(module.half, x)",
    "a submodule's submodule": "return module.part.inner(x)",
    "variables": "return module.part.inner.variables['params']['embedding']",
    "other parameters": "return module.part.inner.apply({'params': x}, x)",
    "one of a list": "return module.parts[0](x)",
}
MISSED = {
    "handed on": "return use(module.part, x)",
    "a method's result handed on": "return use(module._get(), x)",
    "a method's result under a name": "part = module._get()\n            return use(part)",
    "handed on under a name": "part = module.part\n            return use(part, x)",
    "returned": "return module.part",
    "the module handed on": "return use(module), use(x.part)",
    "another method": "return module.part.apply({}, x, method='inner')",
    "options that are unpacked": "return module.part.apply({}, x, **use)",
    "Linen's own": "return module.part.clone()(x)",
    "its path": "return module.part.path",
    "a variable": "return module.seen.value",
    "in a list": "return [part(x) for part in (module.part,)]",
}


def forms(body: str, applied: str = APPLIED) -> tuple[dict[str, str], str]:
    result = auto({"m.py": LINEN + NET + f"{MODEL}            {body}\n{applied}"})
    return said(result), reason(result, "m.Net")


@pytest.mark.parametrize("body", CARRIED.values(), ids=CARRIED)
def test_what_a_lazy_form_carries_leaves_the_class_explicit(body: str) -> None:
    found, why = forms(body)
    assert found == {"m.Part": "explicit", "m.Net": "explicit"}, why


@pytest.mark.parametrize("body", MISSED.values(), ids=MISSED)
def test_what_no_lazy_form_carries_makes_the_class_lazy(body: str) -> None:
    assert forms(body)[0]["m.Net"] == "lazy"


@pytest.mark.parametrize("name", ["init", "init_with_output"])
def test_init_may_be_given_a_function(name: str) -> None:
    applied = f"\n        return self.module.{name}(v, x, method=inside)\n"
    found, why = forms("return module._get()(x)", applied)
    assert found == {"m.Part": "explicit", "m.Net": "explicit"}, why


def test_a_function_that_is_not_in_sight_may_do_anything() -> None:
    applied = "\n        return self.module.apply(v, x, method=use), module.part.use()\n"
    assert forms("return use(module.part)", applied)[0]["m.Net"] == "lazy"


SIZED = (
    "class A(nn.Module):\n    def setup(self):\n        self.one = nn.Dense(3)\n\n"
    "    def __call__(self, x):\n        return self.one(x)\n\n\n"
)


@pytest.mark.parametrize(
    "use",
    [
        "def f(v, x, model=A()):\n    return model.apply(v, x, method=lambda m, x: m.one(x))\n",
        "def f(v, x, model=A()):\n    return model.bind(v).one(x)\n",
    ],
    ids=["apply", "bind"],
)
def test_sizes_of_parts_are_those_of_their_variables_and_calls(use: str) -> None:
    assert said(auto({"m.py": LINEN + SIZED + use})) == {"m.A": "explicit"}


def test_a_submodule_that_need_not_be_there_makes_the_class_lazy() -> None:
    tied = SIZED.replace(
        "        return self.one(x)",
        "        if self.tied:\n            k = {'params': {'kernel': x}}\n            return self.one.apply(k, x)\n"
        "        return self.one(x)",
    ).replace("    def setup", "    tied: bool\n\n    def setup")
    use = (
        "def f(v, x, model=A(True)):\n    return model.apply(v, x, method=lambda m, x: m.one(x))\n"
    )
    assert said(auto({"m.py": LINEN + tied + use})) == {"m.A": "lazy"}


def test_only_classes_that_have_all_that_is_read_can_be_meant() -> None:
    other = SIZED.replace("class A", "class B").replace(
        "        self.one", "        self.two = nn.Dense(3)\n        self.one"
    )
    other = other.replace("self.one(x)", "self.one(self.two(x))")
    use = "def f(v, x, model):\n    return model.apply(v, x, method=lambda m, x: use(m.one, m.two(x)))\n"
    made = "MODELS = [A(), B()]\n\n\n"
    result = auto({"m.py": LINEN + SIZED + other + made + use})
    assert said(result) == {"m.A": "explicit", "m.B": "lazy"}


def test_attributes_of_what_is_no_module_are_not_meant() -> None:
    config = "class Config:\n    part: int = 3\n\n\n"
    other = looped("Other", "use(self.config.part, x)", "    config: Config\n")
    result = auto({"m.py": LINEN + config + NET + other + "use(Net)\n"})
    assert said(result)["m.Net"] == "explicit", reason(result, "m.Net")
    assert "use(lazy(Net))" in code(result)


@pytest.mark.parametrize(("use", "form"), [("m._get()(x)", "explicit"), ("use(m._get())", "lazy")])
def test_a_lazy_class_may_hand_out_parts_of_an_explicit_one(use: str, form: str) -> None:
    other = (
        "class Other(nn.Module):\n    def setup(self):\n        self.net = Net()\n\n"
        "    def _get(self):\n        return self.net.part\n\n"
        "    def __call__(self, x):\n        x = self.net(x)\n"
        "        return nn.while_loop(lambda m, c: c.sum() < 9, lambda m, c: c, self, x, **{})\n\n\n"
        "def f(v, x, model=Other()):\n    return model.apply(v, x, method=lambda m, x: "
        + use
        + ")\n"
    )
    result = auto({"m.py": LINEN + NET + other})
    assert said(result)["m.Other"] == "lazy"
    assert said(result)["m.Net"] == form, reason(result, "m.Net")


def test_a_lazy_class_reads_inside_of_an_explicit_one() -> None:
    for use, form in (("self.net.part(x)", "explicit"), ("use(self.net.part, x)", "lazy")):
        other = (
            "class Other(nn.Module):\n    def setup(self):\n        self.net = Net()\n\n"
            "    def __call__(self, x):\n        x = " + use + "\n"
            "        return nn.while_loop(lambda m, c: c.sum() < 9, lambda m, c: c, self, x, **{})\n"
        )
        assert said(auto({"m.py": LINEN + NET + other}))["m.Net"] == form


def test_a_global_that_only_the_old_text_of_a_class_reads_does_not_matter() -> None:
    alias = "again = nn.remat\n\n\n"
    outer = (
        "class Outer(nn.Module):\n    def setup(self):\n        self.net = again(Net)(2)\n\n"
        "    def __call__(self, x):\n        return self.net(x)\n\n\nuse(Outer)\n"
    )
    result = auto({"m.py": LINEN + alias + NET + outer})
    assert said(result)["m.Outer"] == "explicit", reason(result, "m.Outer")
    assert "again = nn.remat" in code(result)
    assert "again(" not in code(result)


def test_a_lazy_class_that_makes_a_part_reads_that_class_alone() -> None:
    other = NET.replace("Net", "Same").replace("Part", "Piece")
    lazy = (
        "class Other(nn.Module):\n    def setup(self):\n        self.net = Net()\n\n"
        "    def __call__(self, x):\n        x = use(self.net.part, x)\n"
        "        return nn.while_loop(lambda m, c: c.sum() < 9, lambda m, c: c, self, x, **{})\n\n\n"
        "use(Same)\n"
    )
    found = said(auto({"m.py": LINEN + NET + other + lazy}))
    assert (found["m.Net"], found["m.Same"]) == ("lazy", "explicit")


OTHER = (
    "class Other(nn.Module):\n    deep: bool = True\n\n    def setup(self):\n"
    "        if self.deep:\n            self.inner = nn.Embed(4, 3)\n\n"
    "    def __call__(self, x):\n        return self.inner(x) if self.deep else x\n\n\n"
)


def other(body: str) -> str:
    """The form of `Other` beside code that reads inside of a `Net`."""
    text = f"{LINEN}{NET}{OTHER}{MODEL}            {body}\n{APPLIED}"
    return said(auto({"m.py": text + "use(Other)\n"}))["m.Other"]


def test_what_no_class_has_is_of_no_class() -> None:
    assert other("return module.held.inner(x)") == "explicit"


def test_a_part_of_a_module_is_of_the_class_that_setup_makes_it_of() -> None:
    assert other("return module.part.inner(x) + module.bias") == "explicit"


@pytest.mark.parametrize(
    "body",
    [
        "return module.inner(x)",
        "part = x.part\n            return part.inner(x)",
    ],
)
def test_a_module_of_any_class_may_be_the_other(body: str) -> None:
    assert other(body) == "lazy"


STARTED = {
    "its own": ("self.turned(x)", "explicit"),
    "its own submodule's": ("self.own.turned(x)", "explicit"),
    "an explicit submodule's": ("self.net.turned(x)", "lazy"),
    "one that it is given": ("self.given.turned(x)", "lazy"),
    "by a name": ("getattr(self.given, 'turned')(x)", "lazy"),
}


@pytest.mark.parametrize(("use", "form"), STARTED.values(), ids=STARTED)
def test_a_lazy_class_calls_another_method_of_what_may_be_an_explicit_one(
    use: str, form: str
) -> None:
    loop = "nn.while_loop(lambda m, c: c.sum() < 9, lambda m, c: c, self, x, **{})"
    head = "    given: nn.Module = None\n\n    def setup(self):\n"
    tail = f"    def turned(self, x):\n        return {loop}\n\n"
    own = f"class Own(nn.Module):\n    def __call__(self, x):\n        return {loop}\n\n{tail}\n"
    other = (
        f"class Other(nn.Module):\n{head}        self.own = Own()\n        self.net = Net()\n\n"
        f"    def __call__(self, x):\n        return {loop}, {use}\n\n{tail}"
    )
    net = NET.replace("        y = x\n", "        y = self.part(x)\n")
    result = auto({"m.py": LINEN + net + own + other + "use(Net)\n"})
    assert said(result)["m.Other"] == "lazy"
    assert said(result)["m.Net"] == form, reason(result, "m.Net")
