"""What makes a program's model, and what holds it: functions, tables, objects, subclasses."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from benchmarks.generated.writing import Written


@dataclass(frozen=True)
class Owner:
    """Definitions, and lines of ``main`` that bind ``model``."""

    top: str
    lines: tuple[str, ...]


_HOLDER = """\
class Trainer:
    def __init__(self, seed=0):
        self.model = {made}
        self.seed = seed

    def logits(self, variables, x):
        return self.model.apply(variables, x, rngs=keys_of(self.seed), mutable=MUTABLE)[0]


"""
_STRUCT = """\
class Agent(flax.struct.PyTreeNode):
    step: int
    model: Any = flax.struct.field(pytree_node=False)


"""
_ALGORITHM = """\
class Algorithm:
    model_class = {name}

    def create(self, **options):
        return self.model_class(**options)


"""
_CHOOSER = """\
def get_model(kind, **options):
    if kind == "main":
        return {name}(**options)
    raise ValueError(f"unknown model {{kind}}")


"""
_CACHED = """\
@functools.lru_cache(maxsize=None)
def cached_model(flag):
    return {name}({given}flag=flag)


"""
_CONFIG = """\
@dataclasses.dataclass
class Options:
    flag: bool = False


"""
_READY = """\
class Ready({name}):
    flag: bool = False


"""


@st.composite
def owners(draw: st.DrawFn, model: Written) -> Owner:
    """One of the ways to come by the model."""
    name, made = model.name, model.made
    given = "".join(f"{one}, " for one in model.required)
    kinds = {
        "plain": Owner("", (f"model = {made}",)),
        "factory": Owner(f"def create_model():\n    return {made}\n\n\n", ("model = create_model()",)),
        "global": Owner(f"MODEL = {made}\n\n\n", ("model = MODEL",)),
        "partial": Owner("", (f"make = partial({name}, {given}flag=False)", "model = make()")),
        "table": Owner(f'MODELS = {{"main": {name}}}\n\n\n', (f'model = MODELS["main"]({given}flag=True)',)),
        "dict": Owner("", ('options = {"flag": False}', f"model = {name}({given}**options)")),
        "held": Owner(_HOLDER.format(made=made), ("trainer = Trainer()", "model = trainer.model")),
        "struct": Owner(_STRUCT, (f"agent = Agent(0, {made})", "model = agent.replace(step=1).model")),
        "algorithm": Owner(_ALGORITHM.format(name=name), (f"model = Algorithm().create({given}flag=True)",)),
        "chosen": Owner(_CHOOSER.format(name=name), (f'model = get_model("main", {given}flag=False)',)),
        "cached": Owner(_CACHED.format(name=name, given=given), ("model = cached_model(True)",)),
        "config": Owner(_CONFIG, ("config = Options()", f"model = {name}({given}flag=config.flag)")),
        "fields": Owner(_CONFIG, (f"model = {name}({given}**dataclasses.asdict(Options(True)))",)),
        "subclass": Owner(_READY.format(name=name), (f"model = Ready({given.rstrip(', ')})",)),
        "many": Owner("", (f"models = [{name}({given}flag=one) for one in (False, True)]", "model = models[1]")),
        "word": Owner("", (f'model = globals()["{name}"]({given}flag=True)',)),
        "default": Owner(f"def identity(model={made}):\n    return model\n\n\n", ("model = identity()",)),
    }  # fmt: skip
    return kinds[draw(st.sampled_from(sorted(kinds)))]
