"""``auto``: explicit where a class and every place around it is proven, lazy elsewhere."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from nnx_migrate.model import Form, Outcome, RewriteResult
from nnx_migrate.rewrite import forms
from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.reports import needs_a_person, report
from nnx_migrate.rewrite.request import RewriteRequest
from tests.rewrite.projects import LINEN, ROOT, caller, dense, looped, source


def auto(
    files: Mapping[str, str], context: Mapping[str, str] | None = None, **options: Any
) -> RewriteResult:
    own = tuple(source(path, text) for path, text in files.items())
    around = tuple(source(path, text) for path, text in (context or {}).items())
    return rewrite_in(RewriteRequest(ROOT, own, around, base=ROOT, **options))


def said(result: RewriteResult) -> dict[str, str]:
    return {one.name: one.form.value if one.form else one.outcome.value for one in result.classes}


def reason(result: RewriteResult, name: str) -> str:
    return next(one.reason or "" for one in result.classes if one.name == name)


def code(result: RewriteResult, path: str = "m.py") -> str:
    return next(one.code or "" for one in result.files if one.path == path)


def test_what_is_proven_is_explicit_and_the_rest_lazy_in_one_file() -> None:
    result = auto({"m.py": LINEN + dense("A") + looped("B")})
    assert said(result) == {"m.A": "explicit", "m.B": "lazy"}
    assert "class A(nnx.Module)" in code(result)
    assert "class B(nn.Module)" in code(result)
    assert "import nnx_migrate.linen as nn" in code(result)
    assert "while_loop" in reason(result, "m.B")
    assert not needs_a_person(result)


def test_a_class_that_builds_a_lazy_one_is_explicit() -> None:
    result = auto({"m.py": LINEN + looped("B") + caller("Top", "B()(x)") + dense("Other")})
    assert said(result) == {"m.B": "lazy", "m.Top": "explicit", "m.Other": "explicit"}
    assert "self.B_0 = B()" in code(result)


UNPROVEN = {
    "a class by its name in a string": "def make(x):\n    return globals()['A']()\n",
    "a class that a computed name may mean": "import m\n\n\ndef make(name):\n"
    "    return vars(m)[name]().init(0, 1)\n",
}


@pytest.mark.parametrize("text", UNPROVEN.values(), ids=UNPROVEN)
def test_one_unproven_place_makes_the_class_lazy(text: str) -> None:
    result = auto({"m.py": LINEN + dense("A") + text})
    assert said(result) == {"m.A": "lazy"}
    assert text in code(result).replace("import nnx_migrate.linen as nn\n", "")
    assert result.references.refused == result.references.bridged == 0


def test_a_caller_in_a_test_file_counts() -> None:
    tests = "import m\n\n\ndef test_a(helper):\n    helper.check(vars(m))\n"
    result = auto({"m.py": LINEN + dense("A"), "test_m.py": tests})
    assert said(result) == {"m.A": "lazy"}
    assert "test_m.py:5" in reason(result, "m.A")


def test_a_caller_in_a_file_that_is_only_read_counts() -> None:
    script = "from m import A\n\nmodel = A()\nmodel.init(k, x)\n"
    result = auto({"m.py": LINEN + dense("A")}, context={"script.py": script})
    assert said(result) == {"m.A": "lazy"}


def test_a_model_that_another_file_is_given_takes_the_lazy_form() -> None:
    files = {
        "m.py": LINEN + dense("A"),
        "train.py": "import flax\n\n\ndef train(model, k, x):\n    return model.init(k, x)\n",
        "main.py": "from m import A\nfrom train import train\n\n\ndef main(k, x):\n"
        "    model = A()\n    return train(model, k, x)\n",
    }
    result = auto(files)
    assert said(result) == {"m.A": "explicit"}
    assert "model = lazy(A)()" in code(result, "main.py")
    assert result.findings == ()


def test_callers_that_are_rewritten_leave_the_class_explicit() -> None:
    text = "\n\ndef main(k, x):\n    model = A()\n    variables = model.init(k, x)\n    return variables\n"
    result = auto({"m.py": LINEN + dense("A") + text})
    assert said(result) == {"m.A": "explicit"}
    assert "model = lazy(A)()\n    variables = model.init(k, x)" in code(result)


def test_annotations_and_isinstance_break_nothing() -> None:
    text = "\n\ndef check(model: A) -> bool:\n    return isinstance(model, A)\n"
    assert said(auto({"m.py": LINEN + dense("A") + text})) == {"m.A": "explicit"}


def test_a_module_that_is_imported_by_a_computed_name_may_hold_the_class() -> None:
    files = {
        "m.py": "import importlib\n"
        + LINEN
        + caller(
            "Tower",
            "importlib.import_module(f'models.{self.name_}').Model()(x)",
            "    name_: str\n",
        ),
        "models/other.py": LINEN + dense("Model"),
        "models/__init__.py": "",
    }
    assert said(auto(files)) == {"m.Tower": "lazy", "models.other.Model": "lazy"}


def test_a_field_of_modules_that_is_called_as_a_class_is_not_trusted() -> None:
    text = (
        LINEN + dense("Layer") + "class Block(nn.Module):\n    layer_cls: nn.Module\n\n"
        "    def setup(self):\n        self.layer = self.layer_cls()\n\n"
        "    def __call__(self, x):\n        return self.layer(x)\n"
    )
    assert said(auto({"m.py": text}))["m.Block"] == "lazy"


REGISTER = (
    "REGISTRY = {}\n\n\ndef register(cls):\n    REGISTRY[cls.__name__] = cls\n    return cls\n\n\n"
)
NAMED = "def register(name):\n    def add(cls):\n        REGISTRY[name] = cls\n        return cls\n\n    return add\n\n\n"
TEXT = (
    "def text(*parts):\n    def add(cls):\n        cls.__doc__ = ''.join(parts) + (cls.__doc__ or '')\n"
    "        return cls\n\n    return add\n\n\n"
)
MARK = "def mark(cls):\n    cls.marked = cls.__name__\n    return cls\n\n\n"


@pytest.mark.parametrize(
    ("decorator", "form"),
    [
        (REGISTER + "@register\n", "explicit"),
        ("REGISTRY = {}\n\n\n" + NAMED + "@register('a')\n", "explicit"),
        (REGISTER.replace("= cls\n", "= keep(cls)\n") + "@register\n", "lazy"),
        (MARK + "@mark\n", "explicit"),
        (TEXT + "@text('a', 'b')\n", "explicit"),
    ],
    ids=["kept", "kept by name", "handed on", "returned", "given a text"],
)
def test_a_decorator_that_may_do_more_than_keep_the_class_makes_it_lazy(
    decorator: str, form: str
) -> None:
    users = "\n\ndef make(name, x):\n    return REGISTRY[name](3).init(0, x)\n"
    text = LINEN + decorator + dense("A") + (users if "REGISTRY" in decorator else "")
    assert said(auto({"m.py": text})) == {"m.A": form}


def test_lazy_code_is_input_and_what_is_provable_now_is_promoted() -> None:
    text = LINEN + dense("A") + looped("B")
    lazy = rewrite_in(RewriteRequest(ROOT, (source("m.py", text),), base=ROOT), "lazy")
    again = auto({"m.py": code(lazy)})
    assert said(again) == {"m.A": "explicit", "m.B": "lazy"}
    assert code(again) == code(auto({"m.py": text}))


@pytest.mark.parametrize("more", ["", looped("B"), "MODELS = {'a': A}\n"])
def test_running_again_changes_nothing(more: str) -> None:
    once = code(auto({"m.py": LINEN + dense("A") + more}))
    assert code(auto({"m.py": once})) == ""


def test_a_crash_of_the_analysis_makes_the_project_lazy_and_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.delenv("NNX_MIGRATE_DEBUG", raising=False)
    monkeypatch.setattr(forms, "make_explicit", broken)
    result = auto({"m.py": LINEN + dense("A")})
    assert said(result) == {"m.A": "lazy"}
    assert "KeyError: 'lost'" in reason(result, "m.A")
    assert "test_forms.py" in reason(result, "m.A")
    assert [one.rule for one in result.findings] == ["internal"]


def test_an_analysis_that_takes_too_long_makes_the_project_lazy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forms, "_SECONDS", 0.001)
    gc.disable()  # jax has a callback there, in which no exception gets through
    try:
        result = auto({"m.py": LINEN + "".join(dense(f"A{n}") for n in range(50))})
    finally:
        gc.enable()
    assert set(said(result).values()) == {"lazy"}
    assert "takes longer" in reason(result, "m.A1")


def forever(caught: type[BaseException]) -> None:
    with suppress(caught):
        while True:
            pass


@pytest.mark.parametrize("caught", [Exception, BaseException])
def test_the_time_limit_ends_an_analysis_that_swallows_it(caught: type[BaseException]) -> None:
    with pytest.raises(forms.OutOfTime), forms._limit(0.001):
        forever(caught)


def test_a_class_is_lazy_whose_caller_the_judge_missed_and_the_ledger_did_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forms, "judge", lambda *_: {})
    text = "def make(name):\n    return globals()['A']().init(0, 1), A\n"
    caller = "import m\n\n\ndef main():\n    make = m.A  # nnx-migrate: keep\n    return make()\n"
    result = auto({"m.py": LINEN + dense("A") + text, "n.py": caller})
    assert said(result)["m.A"] == "lazy"
    assert "n.py:6: it is built here" in reason(result, "m.A")
    assert not [one for one in result.findings if one.outcome.value == "refused"]


def test_the_ledger_tells_of_other_callers_that_the_judge_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forms, "judge", lambda *_: {})
    text = (
        "def start(net: A):  # nnx-migrate: keep\n    return net.init(0, 1)  # nnx-migrate: keep\n"
    )
    result = auto({"m.py": LINEN + dense("A") + text})
    assert said(result)["m.A"] == "explicit"
    assert [(one.path, one.rule) for one in result.findings if one.outcome.value == "refused"]


def test_kept_classes_stay_linen_and_what_hangs_on_them_is_lazy() -> None:
    kept = dense("K").replace("):\n    @", "):  # nnx-migrate: keep\n    @", 1)
    result = auto({"m.py": LINEN + kept + caller("Top", "K()(x)") + dense("Other")})
    assert said(result) == {"m.K": "kept", "m.Top": "lazy", "m.Other": "explicit"}
    assert "class K(nn.Module):  # nnx-migrate: keep" in code(result)
    assert "class Top(lnn.Module)" in code(result)


def test_the_report_says_the_form_and_why_only_lazy() -> None:
    classes = report(auto({"m.py": LINEN + dense("A") + looped("B")}))["classes"]
    assert [(one["outcome"], one["form"]) for one in classes] == [
        ("rewritten", "explicit"),
        ("rewritten", "lazy"),
    ]
    assert "reason" not in classes[0]
    assert classes[1]["reason"]


def test_a_file_that_is_no_python_is_reported_also_without_flax() -> None:
    result = auto({"m.py": LINEN + dense("A"), "bad.py": "class (\n"})
    assert {one.path: one.error is None for one in result.files} == {"bad.py": False, "m.py": True}
    assert Outcome.REFUSED not in {one.outcome for one in result.classes}
    assert {one.form for one in result.classes} == {Form.EXPLICIT}


def test_a_script_means_the_file_beside_it_among_those_of_one_name() -> None:
    train = "import models\n\n\ndef main(name):\n    run(vars(models)[name]())\n"
    files = {
        "one/models.py": LINEN + dense("A"),
        "one/train_one.py": train,
        "two/models.py": LINEN + dense("A"),
    }
    result = auto(files)
    assert [(one.path, one.form) for one in result.classes] == [
        ("one/models.py", Form.LAZY),
        ("two/models.py", Form.EXPLICIT),
    ]


def test_a_function_of_arrays_that_no_rule_knows_costs_no_class_its_form() -> None:
    text = LINEN + dense("A") + "def pads(x):\n    return nn.linear.canonicalize_padding(x, 2)\n"
    result = auto({"m.py": text})
    assert said(result) == {"m.A": "explicit"}
    assert "class A(nnx.Module)" in code(result)
    assert "canonicalize_padding" in code(result)
    assert "flax.linen" not in code(result)
