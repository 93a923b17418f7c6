"""Dataclass fields as constructor parameters, and what is inherited."""

from __future__ import annotations

import textwrap

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nnx_migrate.model import Form
from tests.rewrite.classes.support import convert, converted, loaded, refusal
from tests.rewrite.projects import one_line, rewrite_in_form
from tests.rewrite.running import compare, printed_alike, refused


def init_of(source: str) -> str:
    text = converted(source)
    return text[text.index("def __init__") :].partition("def __call__")[0]


def test_defaults_order_and_keyword_only_marks_are_kept() -> None:
    text = init_of(
        """\
        class M(nn.Module):
          a: int
          b: float = 0.5
          _: dataclasses.KW_ONLY
          c: str = "x"

          def __call__(self, x):
            return x
        """
    )
    assert text.startswith(
        'def __init__(self, a: int, b: float = 0.5, *, c: str = "x", rngs: nnx.Rngs):'
    )


def test_a_default_factory_runs_for_every_instance() -> None:
    text = init_of(
        """\
        class M(nn.Module):
          sizes: list[int] = dataclasses.field(default_factory=lambda: [1, 2])

          def __call__(self, x):
            return x
        """
    )
    assert "sizes: list[int] = None" in text
    assert "self.sizes = nnm.freeze([1, 2] if sizes is None else sizes)" in text


@pytest.mark.parametrize("made", ["(3, -4)", "'same'", "0.5", "(('a', 1), None)"])
def test_what_a_factory_makes_of_literals_is_the_default_itself(made: str) -> None:
    text = init_of(
        f"""\
        class M(nn.Module):
          kept: Any = dataclasses.field(default_factory=lambda: {made})

          def __call__(self, x):
            return x
        """
    )
    assert f"kept: Any = {made}, *" in text.replace('"', "'")


TUPLE_FIELD = """\
class M(nn.Module):
  bounds: tuple[int, int]

  def __call__(self, x):
    return {}
"""


@pytest.mark.parametrize("read", ["jnp.clip(x, self.bounds[0], 3)", "x + self.bounds[-1]"])
def test_a_tuple_whose_items_are_read_may_hold_arrays(read: str) -> None:
    assert "self.bounds = nnm.constant(bounds)" in init_of(TUPLE_FIELD.format(read))


@pytest.mark.parametrize("read", ["x.reshape(self.bounds)", "x + len(self.bounds)"])
def test_a_tuple_that_is_only_passed_on_stays_plain(read: str) -> None:
    assert "self.bounds = bounds\n" in init_of(TUPLE_FIELD.format(read))


def test_arrays_in_a_tuple_field_are_data_of_the_module() -> None:
    body = TUPLE_FIELD.format("jnp.clip(x, self.bounds[0], self.bounds[1])")
    with loaded(converted(body), "model_with_bounds") as module:
        bounds = (jnp.zeros(2), jnp.full(2, 0.5))
        model = module.M(bounds=bounds, rngs=nnx.Rngs(0))
        assert model(jnp.array([-1.0, 3.0])).tolist() == [0.0, 0.5]


def test_class_valued_defaults_become_factories() -> None:
    text = init_of(
        """\
        class M(nn.Module):
          act: Callable = nn.relu
          conv: Any = nn.Conv

          def __call__(self, x):
            return self.act(x)
        """
    )
    assert "act: Callable = nnx.relu, conv: Any = nnm.factory.Conv" in text


def test_class_variables_stay() -> None:
    text = converted(
        """\
        class M(nn.Module):
          kind: "ClassVar[str]" = "m"
          size: int = 1

          def __call__(self, x):
            return x
        """
    )
    assert '  kind: "ClassVar[str]" = "m"\n' in text


def test_an_inherited_setup_is_called() -> None:
    text = converted(
        """\
        class Base(nn.Module):
          features: int

          def setup(self):
            self.proj = nn.Dense(self.features)

          def __call__(self, x):
            return self.proj(x)


        class Child(Base):
          scale: float = 1.0

          def __call__(self, x):
            return self.scale * self.proj(x)
        """
    )
    child = text[text.index("class Child") :]
    assert "features: int, scale: float = 1.0, *," in child
    assert "self.scale = scale\n" in child
    assert "super().__init__(features=features, in_features=in_features, rngs=rngs)" in child


def test_bases_annotations_and_isinstance_follow() -> None:
    text = converted(
        """\
        class M(nn.Module):
          inner: nn.Module

          def __call__(self, x):
            assert isinstance(self.inner, nn.Module)
            return self.inner(x)
        """
    )
    assert "class M(nnx.Module):" in text
    assert "inner: nnx.Module" in text
    assert "isinstance(self.inner, nnx.Module)" in text


def test_the_class_map_names_fields_and_sizes() -> None:
    found = convert(
        textwrap.dedent(
            """\
            class M(nn.Module):
              features: int

              @nn.compact
              def __call__(self, x):
                return nn.Dense(self.features)(x)
            """
        )
    )["M"]
    class_map = found.class_map
    assert class_map.fields == {"features": "features"}
    assert [one.name for one in class_map.size_arguments] == ["in_features"]
    assert found.imports >= {"nnx"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("  rngs: Any\n", "a field is named 'rngs'"),
        ("  cls: Any\n", "a field is named 'cls'"),
        (
            "  def __setattr__(self, name, value):\n    super().__setattr__(name, value)\n",
            "defines __setattr__",
        ),
        ("  def helper(self, x):\n    return nn.Dense(2)(x)\n", "helper"),
    ],
)
def test_refused(body: str, reason: str) -> None:
    found = refusal(f"class M(nn.Module):\n{body}\n  def __call__(self, x):\n    return x\n")
    assert reason in found.reason


def test_a_field_that_would_hide_a_global_is_refused() -> None:
    found = refusal(
        """\
        def width(x):
          return 2 * x


        class M(nn.Module):
          width: int

          @nn.compact
          def __call__(self, x):
            return nn.Dense(width(self.width))(x)
        """
    )
    assert "would hide the global" in found.reason


def test_the_class_map_says_where_a_shared_submodule_is_listed() -> None:
    found = convert(
        textwrap.dedent(
            """\
            class Decoder(nn.Module):
              table: nn.Module

              def __call__(self, x):
                return self.table(x)


            class M(nn.Module):
              def setup(self):
                self.shared = nn.Embed(5, 4)
                self.encoder = Decoder(self.shared)
                self.decoder = Decoder(table=self.shared)
                self.zoo = nn.Embed(5, 4)

              def __call__(self, x):
                return self.encoder(x) + self.decoder(x) + self.zoo(x)
            """
        )
    )["M"]
    assert found.class_map.attributes == {"shared": "decoder/table"}


def test_a_default_may_read_a_global_named_like_a_field_without_one() -> None:
    text = init_of(
        """\
        class M(nn.Module):
          jax: Callable = jax.nn.relu

          def __call__(self, x):
            return x
        """
    )
    assert "jax: Callable = jax.nn.relu" in text


CONSTANTS = {  # what stands in the class body before ``width``, the default, what it becomes
    "arithmetic": ("size: int = 3", "2 * size", "2 * 3"),
    "part of an operation": ("size: int = 3 + 1", "2 * size", "2 * (3 + 1)"),
    "a negative number": ("size: int = -3", "size**2", "(-3)**2"),
    "the field itself": ("size: int = 3", "size", "3"),
    "one that reads another": (
        "base: int = 3\n    size: int = base * 2",
        "size + base",
        "(3 * 2) + 3",
    ),
    "a tuple": ("sizes: tuple = (3, 4)", "sizes[0]", "(3, 4)[0]"),
    "an argument": ("size: int = 3", "make(size, k=size)", "make(3, k=3)"),
    "in field(...)": ("size: int = 3", "dataclasses.field(default=size + 1)", "3 + 1"),
    "what a comprehension meets": (
        "sizes: tuple = (3, 4)",
        "sum(2 for _ in sizes)",
        "sum(2 for _ in (3, 4))",
    ),
    "a name of the file": ("size: int = LIMIT", "2 * size", "2 * LIMIT"),
    "a dtype": ("dtype: Any = jnp.float32", "dtype", "jnp.float32"),
    "a class attribute": ("K = 3", "2 * K", "2 * K"),
    "a field below it": ("", "2 * size\n    size: int = 3", "2 * size"),
}
FILE = "LIMIT = size = 3\n\n\ndef make(*args, **kwargs):\n    return 3\n\n\n"
BODY = (
    FILE
    + "class M(nn.Module):\n    {}\n    width: Any = {}\n\n    def __call__(self, x):\n        return x\n"
)


@pytest.mark.parametrize(("before", "default", "expected"), CONSTANTS.values(), ids=CONSTANTS)
def test_a_default_has_the_values_of_the_class_body(
    before: str, default: str, expected: str
) -> None:
    assert f"width: Any = {expected}," in one_line(converted(BODY.format(before, default)))


UNKNOWN = {
    "a call": ("size: int = make()", "2 * size"),
    "an object that is made": ("size: list = [3]", "size"),
    "field(...)": ("size: int = dataclasses.field(default=3)", "size"),
    "a method of the name": ("size: int = 3\n    def size(self): ...", "2 * size"),
    "bound twice": ("size: int = 3\n    size: int = 4", "2 * size"),
    "bound below": ("size: int = 3", "2 * size\n    size = 4"),
    "bound under a condition": ("size: int = 3\n    if BIG:\n        size = 4", "2 * size"),
    "a lambda, which sees the file's": ("size: int = 3", "lambda: size"),
    "a comprehension, which sees the file's": ("size: int = 3", "[size for _ in range(2)]"),
}


@pytest.mark.parametrize(("before", "default"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_default_that_reads_a_field_of_another_value_is_refused(
    before: str, default: str
) -> None:
    reason = refusal(BODY.format(before, default)).reason
    assert "the field 'size' as a class attribute" in reason or "the field size" in reason


def test_an_attribute_that_setup_assigns_may_be_declared_as_a_field() -> None:
    text = converted(
        """\
        class M(nn.Module):
            width: int
            table: jax.Array = dataclasses.field(init=False)
            last: int = 2

            def setup(self):
                self.table = self.param("table", nn.initializers.ones, (self.width,))

            def __call__(self, x):
                return x + self.table[self.last]
        """
    )
    assert "def __init__(self, width: int, last: int = 2, *, rngs: nnx.Rngs):" in text
    assert "dataclasses.field" not in text
    assert "self.table = nnx.Param(" in text


def test_a_declared_field_with_a_default_is_a_field() -> None:
    found = refusal(
        "class M(nn.Module):\n  table: int = dataclasses.field(init=False, default=3)\n\n"
        "  @nn.compact\n  def __call__(self, x):\n"
        "    return x + self.param('table', nn.initializers.ones, (3,))\n"
    )
    assert "no argument of the constructor gives the field 'table'" in found.reason


@pytest.mark.parametrize("default", ["default=4", "default_factory=lambda: 4"])
@pytest.mark.parametrize("place", ["{0}\n    width: int = 3", "width: int = 3\n    {0}"])
def test_a_default_that_no_argument_replaces_keeps_its_class_lazy(default: str, place: str) -> None:
    fields = place.format(f"more: int = dataclasses.field(init=False, {default})")
    source = f"""\
import dataclasses
import flax.linen as nn
import jax
import jax.numpy as jnp


class Model(nn.Module):
    {fields}

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(nn.Dense(self.more)(x))


def main():
    variables = Model(2).init(jax.random.key(0), jnp.ones((2, 6)))
    print(jax.tree.map(jnp.shape, variables))
    print(Model(width=2).apply(variables, jnp.ones((2, 6))).tolist())
"""
    assert printed_alike(source) == {"m.Model": "lazy"}


FACTORY = """\
class M(nn.Module):
  act: {annotation} = dataclasses.field(default_factory={made})

  def __call__(self, x):
    return {read}
"""


@pytest.mark.parametrize(
    ("annotation", "read"),
    [
        ("Optional[Callable]", "x"),
        ("Callable | None", "x"),
        ("Any", "x if self.act is None else self.act(x)"),
        ("Any", "x if self.act == None else self.act(x)"),
    ],
)
def test_a_default_factory_beside_none_is_refused(annotation: str, read: str) -> None:
    source = FACTORY.format(annotation=annotation, read=read, made="lambda: jnp.tanh")
    assert "None is a value of the field 'act'" in refusal(source).reason


def test_a_default_factory_of_a_field_that_a_call_gives_none_is_refused() -> None:
    source = FACTORY.format(annotation="Any", read="x", made="lambda: jnp.tanh")
    assert "None is a value" in refusal(source + "\n\nmodel = M(act=None)\n").reason


@pytest.mark.parametrize(
    ("made", "read"),
    [
        ("dict", "x"),
        ("lambda: dict(a=1)", "x"),
        ("lambda: {'a': 1}", "x"),
        ("list", "x"),
        ("make", "x + len(self.act.copy({'a': 1}))"),
    ],
)
def test_a_field_of_any_type_that_linen_freezes_is_frozen(made: str, read: str) -> None:
    source = FACTORY.format(annotation="Any", read=read, made=made)
    assert "self.act = nnm.as_field(" in converted("def make():\n  return {}\n\n\n" + source)


def test_a_field_of_any_type_that_a_factory_makes_a_function_of_stays_plain() -> None:
    text = converted(FACTORY.format(annotation="Any", read="self.act(x)", made="lambda: jnp.tanh"))
    assert "self.act = jnp.tanh if act is None else act\n" in text


def with_default(default: str) -> str:
    return f"""\
import functools
from dataclasses import field

class M(nn.Module):
    width: int = 3
    inner: Any = {default}

    def __call__(self, x):
        return x
"""


@pytest.mark.parametrize(
    "default",
    ["M(2)", "(M(1), M(2))", "field(default_factory=lambda: [M(2)])", "field(default_factory=M)"],
)
def test_a_module_as_a_default_is_refused(default: str) -> None:
    found = refusal(with_default(default))
    assert found.reason == "the default of 'inner' builds a module"


@pytest.mark.parametrize("default", ["M", "functools.partial(M, 2)"])
def test_a_class_as_a_default_is_kept(default: str) -> None:
    assert f"inner: Any = {default}" in init_of(with_default(default))


ABSTRACT = """\
import abc

import flax.linen as nn


class Base(abc.ABC, nn.Module):
    @property
    @abc.abstractmethod
    def is_wide(self):
        ...

    def twice(self):
        return 2 if self.is_wide else 1


class Model(Base):
    is_wide: bool{default}
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x) * self.twice()
"""


@pytest.mark.parametrize("given", ["", "is_wide=False", "True, 4"])
def test_a_field_takes_the_place_of_an_abstract_property(given: str) -> None:
    source = ABSTRACT.format(default=" = True")
    report = compare(source, f"Model({given})", {"in_features": 2}, (np.ones((2, 2), np.float32),))
    report.raise_if_different()


@pytest.mark.parametrize("default", ["", " = bool(1)"])
def test_one_without_a_plain_default_keeps_its_class_linen(default: str) -> None:
    assert "stands for a method of a base" in refused(ABSTRACT.format(default=default))


@pytest.mark.parametrize(
    "shape", ["(*self.shape, 2)", "[*self.shape, *(2,)]", "(6, *self.tail, 2)"]
)
def test_a_field_spread_in_a_shape_stays_spread(shape: str) -> None:
    source = f"""\
from typing import Sequence
import flax.linen as nn
import jax
import jax.numpy as jnp


class Model(nn.Module):
    shape: Sequence[int] = (6,)
    tail: Sequence[int] = ()

    @nn.compact
    def __call__(self, x):
        return x @ self.param("v", nn.initializers.normal(), {shape})


def main():
    x = jnp.sin(jnp.arange(12.0)).reshape(2, 6)
    variables = Model().init(jax.random.key(0), x)
    print(jax.tree.map(jnp.shape, variables), Model().apply(variables, x).tolist())
"""
    assert printed_alike(source) == {"m.Model": "explicit"}


OPTIONS = """\
import dataclasses
import itertools
import flax.linen as nn
import jax
import jax.numpy as jnp

counter = itertools.count(1)


class Model(nn.Module):
    width: int = 4
    scale: int = dataclasses.field({options})

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x) * self.scale


def main():
    x = jnp.ones((2, 3))
    one, other = Model(), Model(scale=2)
    variables = one.init(jax.random.key(0), x)
    for model in (one, one, other, Model()):
        print(model.apply(variables, x).tolist())
    print(one == other, hash(one) == hash(other), one == Model(), repr(one) == repr(other))
    print([dict(one.metadata) for one in dataclasses.fields(one) if one.name == 'scale'])
"""


@pytest.mark.parametrize(
    "options",
    [
        "default=1, compare=False",
        "default=1, hash=False",
        "default=1, metadata={'help': 'a factor'}",
        "default_factory=lambda: 1, compare=False",
        "default_factory=lambda: next(counter)",
        "default_factory=counter.__next__",
    ],
)
def test_a_field_that_says_more_than_its_default_keeps_its_class_lazy(options: str) -> None:
    assert printed_alike(OPTIONS.format(options=options)) == {"m.Model": "lazy"}


@pytest.mark.parametrize(
    "options",
    ["default=1, kw_only=True", "default=1, init=True", "default_factory=lambda: len('a')"],
)
def test_a_field_that_says_its_default_is_explicit(options: str) -> None:
    assert printed_alike(OPTIONS.format(options=options)) == {"m.Model": "explicit"}


def test_metadata_that_no_code_reads_says_nothing() -> None:
    text = OPTIONS.format(options="default=1, metadata={'help': 'a factor'}")
    unread = text.replace("dict(one.metadata)", "one.name")
    assert printed_alike(unread) == {"m.Model": "explicit"}


@pytest.mark.parametrize("option", ["compare=False", "hash=True", "repr=True, compare=True"])
def test_options_that_no_parameter_has_are_refused(option: str) -> None:
    source = f"class M(nn.Module):\n  w: int = dataclasses.field(default=4, {option})\n"
    found = refusal(f"{source}\n  def __call__(self, x):\n    return x\n")
    assert f"{option.rpartition(', ')[2].partition('=')[0]}= of field(...)" in found.reason


MAKERS = """\
import itertools
import random
import numpy as np

count = itertools.count()
same = partial(dict, a=1)


def next_one():
  return next(count)


def sizes():
  'What is made.'
  return [3, 4]


def varied():
  print('made')
  return [3, 4]


@dataclasses.dataclass
class Config:
  width: int = 3
  more: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Counted(Config):
  number: int = dataclasses.field(default_factory=next_one)


class Numbered:
  def __init__(self):
    self.number = next(count)


class M(nn.Module):
  made: Any = dataclasses.field(default_factory={made})

  def __call__(self, x):
    return x
"""


@pytest.mark.parametrize(
    "made",
    [
        "dict",
        "list",
        "same",
        "sizes",
        "Config",
        "jnp.zeros",
        "partial(jnp.zeros, (3,))",
        "partial(dict, a=sizes())",
        "nn.initializers.lecun_normal",
        "lambda: [3, 4]",
        "lambda: {'a': [1], 'b': tuple(range(3))}",
        "lambda: np.eye(3).reshape(-1)",
        "lambda: nn.initializers.normal(0.02)",
        "lambda: partial(nn.LayerNorm, epsilon=1e-6)",
        "lambda: lambda x: next(x)",
    ],
)
def test_a_factory_that_makes_the_same_each_time(made: str) -> None:
    assert "if made is None else made" in converted(MAKERS.format(made=made))


@pytest.mark.parametrize(
    "made",
    [
        "next_one",
        "varied",
        "Counted",
        "Numbered",
        "object",
        "random.random",
        "itertools.count",
        "count.__next__",
        "partial(next, count)",
        "partial(dict, a=next_one())",
        "lambda: next(count)",
        "lambda: [random.random() for _ in range(3)]",
        "lambda: np.random.normal()",
        "lambda: np.random.default_rng(0)",
        "lambda: [seen := 1]",
        "lambda: count.__next__()",
        "lambda: (lambda: next(count))()",
    ],
)
def test_a_factory_that_may_make_another_each_time_is_refused(made: str) -> None:
    assert "may be another each time" in refusal(MAKERS.format(made=made)).reason


DECLARED_ELSEWHERE = {
    "a function": ("def made(value):\n  return dataclasses.field(default=value)\n", "made(3)"),
    "a lambda": ("made = lambda: dataclasses.field(default_factory=list)\n", "made()"),
    "a partial": ("made = functools.partial(dataclasses.field, kw_only=True)\n", "made(default=3)"),
    "a name": ("three = dataclasses.field(default=3)\n", "three"),
    "a choice": ("SLIM = False\n", "dataclasses.field(default=3) if SLIM else 5"),
}


@pytest.mark.parametrize(("before", "default"), DECLARED_ELSEWHERE.values(), ids=DECLARED_ELSEWHERE)
def test_a_default_that_code_makes_a_declaration_of_keeps_its_class_lazy(
    before: str, default: str
) -> None:
    head = "import dataclasses\nimport functools\n"
    body = "class M(nn.Module):\n  width: Any = {}\n  def __call__(self, x):\n    return x\n"
    reason = refusal(head + before + body.format(default)).reason
    assert "may be a dataclasses.field(...) that is made elsewhere" in reason


def test_a_default_that_a_function_computes_may_stay() -> None:
    text = converted(
        """\
        def orthogonal(scale):
          return nn.initializers.orthogonal(scale)

        class M(nn.Module):
          init: Any = orthogonal(2.0)

          def __call__(self, x):
            return self.init(x)
        """
    )
    assert "init: Any = orthogonal(2.0)" in text


def test_classes_in_functions_have_such_defaults_too() -> None:
    source = """\
import dataclasses
import flax.linen as nn
def made():
  return dataclasses.field(default=3)
def model(size):
  class One(nn.Module):
    width: int = made()
    def __call__(self, x):
      return x
  class Two(nn.Module):
    width: int = size
    def __call__(self, x):
      return x
  return One, Two
"""
    found = rewrite_in_form({"m.py": source}, "auto").classes
    assert [one.form for one in found] == [Form.LAZY, Form.EXPLICIT]
