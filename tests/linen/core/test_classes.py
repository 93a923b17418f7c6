"""Classes as people write them become modules, whatever they inherit, annotate or name."""

import abc
import subprocess
import sys
import textwrap
import threading
from typing import Any, Generic, Protocol, TypeVar, get_type_hints

import flax.linen
import jax
import jax.numpy as jnp
import pytest

import nnx_migrate.linen as nn
from tests.linen.core.models import KEY, X, dense

Layer = dense(nn)
T = TypeVar("T")


def test_fields_may_have_the_names_of_nnx_methods():
    class Modes(nn.Module):
        train: bool
        eval: int
        features: int = 2

        @nn.compact
        def __call__(self, x):
            return Layer(self.features)(x)

    with pytest.raises(TypeError, match="missing 2 required"):
        Modes()
    assert nn.build(Modes(True, 3), X, rngs=KEY).train is True


@pytest.mark.parametrize("linen", [nn, flax.linen])
def test_type_hints_are_those_of_the_fields(linen):
    class Sized(linen.Module):
        features: int = 2

    hints = get_type_hints(Sized)
    assert [name for name in hints if not name.startswith("_")] == ["features", "parent", "name"]


def test_submodules_may_have_the_names_of_nnx_methods():
    class Inner(nn.Module):
        def setup(self):
            self.eval, self.train = Layer(3), Layer(2)

        def __call__(self, x):
            return self.eval(x)

    class Outer(nn.Module):
        def setup(self):
            self.inner = Inner()

        def __call__(self, x):
            return self.inner.eval(x), self.inner.train(x)

    model = nn.build(Outer(), X, rngs=KEY)
    assert set(nn.variables(model)["params"]["inner"]) == {"eval", "train"}


def test_protocols_abstract_and_generic_bases():
    class Encodes(Protocol):
        def encode(self): ...

    class Base(nn.Module, abc.ABC):
        @abc.abstractmethod
        def name_of(self): ...

    class Both(Base, Encodes, Generic[T]):
        width: int = 3

        @nn.compact
        def __call__(self, x):
            return Layer(self.width)(x)

        def name_of(self):
            return "both"

    with pytest.raises(TypeError, match="abstract"):
        Base()
    assert nn.build(Both[int](), X, rngs=KEY)(X).shape == (2, 3)


def test_annotations_are_never_evaluated():
    class Odd(nn.Module):
        value: "np.no_such | List[undefined]" = None  # type: ignore[name-defined]  # noqa: F821

    assert Odd().value is None


def test_modules_in_a_container_can_be_mapped_over():
    class Many(nn.Module):
        def setup(self):
            self.layers = {"a": Layer(2), "b": Layer(4)}

        def __call__(self, x):
            return jax.tree.map(lambda layer: layer(x), dict(self.layers))

    shapes = jax.tree.map(jnp.shape, nn.build(Many(), X, rngs=KEY)(X))
    assert shapes == {"a": (2, 2), "b": (2, 4)}


def test_threads_do_not_meet():
    found: list[Any] = []

    def work() -> None:
        for _ in range(10):
            found.append(set(Layer(3).init(KEY, X)["params"]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"kernel"}] * 40


def run(outer: Any, inner: Any, number: int) -> Any:
    """Variables and first call of two models whose classes are of ``outer``, layers of ``inner``."""
    layer = dense(inner)

    class Outer(outer.Module):
        inner: Any

        def setup(self):
            self.layers = [layer(4), layer(5)]
            self.one = layer(3)

        def __call__(self, x):
            for each in self.layers:
                x = each(x)
            return self.inner(self.one(x))

    class Compact(outer.Module):
        @outer.compact
        def __call__(self, x):
            x = layer(4)(x)
            x = layer(4, name="named")(x)
            return Outer(layer(6), name="outer")(x) + Outer(layer(6))(x)

    model = [Outer(layer(7)), Compact()][number]
    variables = jax.jit(model.init)(KEY, X)
    first = jax.jit(lambda v: model.apply(v, X, mutable=["stats"]))(variables)
    return variables, first


@pytest.mark.parametrize("number", [0, 1], ids=["setup", "compact"])
@pytest.mark.parametrize(
    ("outer", "inner"),
    [(nn, nn), (nn, flax.linen), (flax.linen, nn)],
    ids=["lazy in lazy", "Linen in lazy", "lazy in Linen"],
)
def test_mixed_trees_have_linens_paths_and_values(outer, inner, number):
    expected = run(flax.linen, flax.linen, number)
    found = run(outer, inner, number)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    assert jax.tree.leaves(expected)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), found, expected))


@pytest.mark.parametrize("outer", [nn, flax.linen], ids=["lazy", "Linen"])
def test_a_foreign_definition_in_a_field_serves_many_calls(outer):
    inner = dense(flax.linen if outer is nn else nn)(3)

    class Holds(outer.Module):
        layer: Any

        @outer.compact
        def __call__(self, x):
            return self.layer(x) + self.layer(x)

    model = Holds(inner)
    variables = model.init(KEY, X)
    assert set(variables["params"]) == {"layer"}
    first = model.apply(variables, X)
    assert (model.apply(variables, X) == first).all()


@pytest.mark.parametrize("api", [flax.linen, nn], ids=["linen", "lazy"])
def test_str_is_the_representation_that_a_class_writes(api):
    class Short(api.Module):
        def __repr__(self):
            return "short"

    class Kept(Short):
        pass

    assert [str(Short()), f"{Kept()}"] == ["short", "short"]


def test_all_runs_where_flax_linen_cannot_be_imported():
    script = """
        import sys
        import flax, flax.nnx  # imports flax.linen for its bridge
        for name in [name for name in sys.modules if name.startswith("flax.linen")]:
            del sys.modules[name]
        del flax.linen

        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name.startswith("flax.linen"):
                    raise ImportError(name)

        sys.meta_path.insert(0, Refuse())
        import jax.numpy as jnp
        import nnx_migrate.linen as nn
        from tests.linen.core.models import KEY, X, dense

        model = nn.build(dense(nn)(3), X, rngs=KEY)
        assert model(X).shape == (2, 3)
        assert not any(name.startswith("flax.linen") for name in sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
