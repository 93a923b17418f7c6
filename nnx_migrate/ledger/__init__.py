"""The ledger: counts Linen in the input and in the output, by code the rewriter does not use.

Only the standard library and ``nnx_migrate.model`` are imported here, so that a mistake in how the
rewriter reads names cannot hide itself. The interface is `count` and `settle`.

**A reference** is a name or dotted expression, loaded anywhere but in an import statement, that
resolves through imports, aliases and project re-exports to ``flax.linen`` or below. The longest
dotted expression counts once. Decided here:

- Annotations, bases, decorators, defaults and expressions in f-strings count; strings, quoted
  annotations, comments, type comments and import statements do not. Storing or deleting a name does
  not; in ``nn.Dense = X`` the ``nn`` is loaded and counts.
- An alias is a name bound to a plain name or dotted expression, in any scope, ``Dense = nn.Dense``.
  A name bound to a call or to a choice (``partial(nn.Dense)``, ``nn.relu if a else nn.gelu``) is
  no alias: the expression on its right counts, loads of the name do not. Nor do parameters, loop
  variables and attributes of instances (``self.dense``).
- A name with several bindings (a conditional import, a ``global`` rebinding) refers to all of
  them; when one is Linen it counts, with ``certain=False`` when another is not. Class bodies are
  read from top to bottom, functions and modules as a whole; ``del`` is not followed.
- ``flax`` is always the installed package, even in a checkout of Flax. An absolute import the
  project lacks is looked for beside the importing file and in the folders above (scripts, ``src``).

**A call site** is a call of ``init``, ``init_with_output``, ``apply``, ``bind``, ``unbind``,
``tabulate`` or ``lazy_init`` on a value that is or may be a Linen module, and of ``clone``,
``copy`` or ``module_paths`` on one that surely is. Decided here:

- The receiver's value is followed through constructors, local names, ``self`` attributes, dataclass
  fields, properties, returns, annotations (quoted ones too), ``partial``, lifted transforms
  (``nn.remat(Block)``), ``bind`` and ``clone``. A method taken from a class counts as well.
- It surely is no module when it comes from a package known not to make any (jax, optax, numpy, ...;
  `externals`), from ``flax`` outside ``flax.linen``, from a literal, a Python module, or a project
  class whose whole base chain is known.
- Anything else may be one. That counts, with ``certain=False``, in a file that imports flax, or
  imports a name whose definition mentions flax at any remove (`reach`).
- What a module does inside its own class (``self.param``, ``self.sow``, ...) is no call site.
- A method that is named without a call (``apply_fn=model.apply``, ``jax.jit(model.init)``) is kept
  apart among the ``handles``, and a constructor call among the ``constructors``: the report adds
  them up, because converting the class breaks them too.

- A constructor call is a call of a name that means classes of the project only, all of them Linen;
  those of ``flax.linen`` are references already. `constructors` says when one of an NNX class is
  stale.

**A Linen class** is one whose base chain ends in a class of ``flax.linen``, across files.

How the outcomes are found, and why they cannot be claimed at will: `settling`.
"""

from nnx_migrate.ledger.counting import count
from nnx_migrate.ledger.data import Count, Entry, Ledger, Place, Source
from nnx_migrate.ledger.project import Read
from nnx_migrate.ledger.settling import settle, survivors, tally

__all__ = [
    "Count",
    "Entry",
    "Ledger",
    "Place",
    "Read",
    "Source",
    "count",
    "settle",
    "survivors",
    "tally",
]
