"""What ``nnx-migrate explain`` says: of rules for Linen names, and of all else that findings name.

A finding carries a rule's name or one of ``CONCERNS``: parts of the rewriter that no single Linen
name stands for.
"""

from __future__ import annotations

from collections.abc import Mapping

from nnx_migrate import constructs

CONCERNS: Mapping[str, str] = {
    "call-time-argument": (
        "A constructor argument that depends on the call (deterministic=not train) moves to where"
        " the layer is called: NNX builds the layer once, before any call. It is refused where the"
        " layer is handed on instead of called, because nobody would pass the argument there."
    ),
    "call_site": (
        "A place that constructs a Linen module or runs one (init, apply, bind, tabulate, ...). The"
        " simple functional forms are rewritten; the others are left as they are, and the message"
        " says what to write. A constructor call outside of a class has to pass rngs and the sizes"
        " that the class now asks for."
    ),
    "class": (
        "The class as a whole, or something in it that no other rule speaks of: what it defines"
        " that a converted class cannot have, names that its __init__ would have to know, or a form"
        " of code that is not understood."
    ),
    "class-decorator": (
        "A decorator of the class statement. Linen's own and dataclass go away with the conversion;"
        " what another one does with the class is not known, so the class is left as it is."
    ),
    "compact": (
        "A compact method is split in two: what it builds moves to __init__, what it computes stays."
        " It is refused where what is built, or under which name, depends on values that only a"
        " call knows. Make what decides it a field, or build it unconditionally."
    ),
    "cut": (
        "The class could be converted, but one that it inherits from, builds or holds stays Linen,"
        " and the two would not run together. cut_by in the report names the class that every"
        " such chain starts from: convert that one first."
    ),
    "evidence": (
        "What `nnx-migrate record` saw, given with --evidence. It is joined to the code by the hash"
        " of each file: evidence of a file that was edited since is rejected by name. It also tells"
        " of submodules that only some recorded instances have."
    ),
    "explicit": (
        "NNX as people write it: submodules are built in __init__, with their sizes and rngs. A class"
        " is written so only where it is proven, together with every place that builds, lifts,"
        " inherits from, hands on or calls it, tests and scripts included. One place that is not"
        " rewritten makes it lazy, and all that hangs together with it; `reason` in the report names"
        " that place. `rewrite --form explicit` exits with 1 and says it for each class. Where that place"
        " imports a module by a name that only the running program knows, [tool.nnx-migrate.imports] in"
        " pyproject.toml says which modules those are."
    ),
    "factory_function": (
        "A function, method or class method that builds a layer and returns it gets the streams and"
        " the width of its input from those who call it. Where other code uses it, too, or a caller is"
        " lazy, it stays as it is, and explicit classes hold what it builds lazily. One in a file that is"
        " not rewritten keeps its callers lazy: build the submodule in setup or in the compact method"
        " itself."
    ),
    "fields": (
        "Dataclass fields become constructor parameters with the same order, defaults and"
        " keyword-only marks. Fields that NNX has another meaning for (rngs, name, parent) and"
        " defaults that cannot be written as a parameter's are refused: rename or write them out."
    ),
    "file": (
        "The new text of a file would not parse, or would not be what was planned; its classes are"
        " left as they are. Please report it with the file."
    ),
    "helper": (
        "A helper method that builds submodules is converted where the compact method plainly calls"
        " it; one that builds one and returns it where setup or the compact method does, and where it"
        " reads no more than plain fields. Its class stays Linen where who calls it, or how often, is not known from the text:"
        " build the submodules in the compact method or in setup."
    ),
    "inheritance": (
        "A class takes over what the Linen classes that it inherits from build. It is refused where"
        " a part of it is overridden and the rest kept, or where Linen's numbering of submodules"
        " would run on from the base in a way that the text does not tell."
    ),
    "internal": (
        "The conversion of this class failed with an error of the rewriter's own; nothing of it was"
        " changed. Please report it with the class."
    ),
    "lazy": (
        "The class is an NNX module whose text stays as it was but for its imports: it takes its"
        " layers from nnx_migrate.linen, builds its submodules in the first call under Linen's names"
        " and with Linen's keys, and keeps init, apply, bind and the rest, so that callers, optimizer"
        " masks and checkpoints go on unchanged. nnx_migrate.linen.build(model, *inputs, rngs=...)"
        " makes its variables attributes, as NNX has them. To make it explicit, rewrite the place"
        " that `reason` in the report names and run rewrite again: it takes lazy code as input."
    ),
    "lazy_submodule": (
        "An explicit class may hold submodules whose classes are lazy: its constructor names them, and"
        " their first call makes their variables, at Linen's path and from Linen's keys. A method may make"
        " something of a lazy class and call that (block = nn.remat(Block)). It must do no more than call"
        " them in its methods: what is handed on, run inside a function or a transformation of jax, or"
        " given a module makes the class lazy, too."
    ),
    "ledger": (
        "Every reference to Linen and every call site is counted before and after by code that the"
        " rewriter does not use. The counts of this class did not add up, so it is left as it is."
        " Please report it with the class."
    ),
    "loop": (
        "A training loop around a flax TrainState, with --loop nnx. It becomes NNX's (the module, an"
        " nnx.Optimizer, nnx.value_and_grad, nnx.jit) where every place that the state goes through is"
        " followed, in all functions and files together. Else it stays functional, and the message names"
        " the first place that is not: change that one and run rewrite again."
    ),
    "module-api": (
        "What methods ask of their module (self.param, self.variable, self.sow, self.make_rng,"
        " self.is_initializing, ...). Those without a counterpart in NNX are refused with a recipe;"
        " `nnx-migrate explain module-methods` lists what becomes of each."
    ),
    "names": (
        "Parameters, submodules, fields and methods share one namespace in NNX, and paths of"
        " parameters stay what Linen called them. Where two claim one name and none can step aside,"
        " the class is refused: rename one of them."
    ),
    "post-init": (
        "__post_init__ runs when all fields are set, before anything is built; its statements move"
        " to the start of __init__. Refused where it sets what NNX would keep as state, or where"
        " its base does not have one."
    ),
    "reference": (
        "A name of flax.linen outside of classes. It is rewritten where it has a counterpart; where"
        " it is used in a way that has none, it is left as it is and the message says what to do."
    ),
    "review": (
        "The class is converted, and something about it is worth a look: an assumption that the"
        " code does not state, a size that only recorded calls tell, a change that callers see."
        " Its confidence in the report is `review`, not `exact`, where the doubt is about the result."
    ),
    "scope_function": (
        "A function that builds layers and calls them, used inside compact methods, becomes two:"
        " init_f for constructors and f for calls. Refused where it is more than plainly called."
    ),
    "setup": (
        "The statements of setup move to __init__. Submodules in lists, tuples and dicts keep"
        " Linen's names (layers_0); what follows a parameter becomes a property. Refused where what"
        " an attribute holds cannot be told from the text."
    ),
    "sizes": (
        "NNX builds layers at once, so it needs the sizes that Linen takes from the first input."
        " They are read from the code, else taken from recorded calls (--evidence), else asked for"
        " as constructor arguments. A size that cannot be handed in that way is a refusal:"
        " `nnx-migrate record` on a program that builds the class, or a field with the size, help."
    ),
    "stacked": (
        "A submodule that is lifted over axes must not make variables that only a call can make."
        " Read the variable's shape from fields, or make it outside of the lift."
    ),
    "submodule": (
        "The constructor call of a submodule. Refused where it says where the submodule hangs"
        " (parent=), or passes what the converted class cannot take."
    ),
    "tied": (
        "A layer of setup that a call gives its parameters (self.head.apply({...}, h)) becomes a"
        " function of them. Refused where it needs more of setup than its fields."
    ),
    "variable": (
        "A variable whose initial value is computed from what another collection has."
        " Linen makes it wherever it is missing, of the values that are there then. A constructor would"
        " compute it from parameters of its own, which those that `apply` gets replace."
    ),
}


def explain(name: str) -> str:
    """Documentation by the name that a finding carries, a Linen name (``Dense``) or full symbol.

    Raises:
        KeyError: there is no such rule.
    """
    if name not in CONCERNS:
        return constructs.explain(name)
    is_rule = any(name == rule.name for rule in constructs.all_rules())
    return f"{CONCERNS[name]}\n\n{constructs.explain(name)}" if is_rule else CONCERNS[name]


def names() -> list[str]:
    """Everything that can be explained."""
    found = set(CONCERNS)
    for rule in constructs.all_rules():
        found |= {rule.name, *(symbol.removeprefix("flax.linen.") for symbol in rule.symbols)}
    return sorted(found)
