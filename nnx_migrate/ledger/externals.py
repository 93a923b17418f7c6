"""What is known of names outside the project: which calls hand a module on, what is no module."""

from __future__ import annotations

# Packages whose values are never Linen modules. A name of any other package may be one.
_NOT_FLAX = """
    jax jaxlib optax numpy scipy orbax chex haiku equinox distrax rlax torch torchvision
    tensorflow tensorflow_datasets tensorflow_probability tensorflow_text tensorboard tensorboardX tf keras pandas
    sklearn matplotlib seaborn PIL cv2 datasets tokenizers sentencepiece seqio grain wandb mlflow
    absl ml_collections hydra omegaconf yaml tqdm rich einops pytest hypothesis gym gymnasium
    brax dm_env requests psutil ray tensorstore msgpack nnx_migrate
    argparse ast asyncio base64 bisect collections concurrent csv ctypes datetime decimal difflib
    enum fractions gc glob gzip hashlib heapq html http inspect io json logging math multiprocessing
    operator os pathlib pickle pprint queue random re shutil signal socket sqlite3 statistics
    string struct subprocess sys tempfile textwrap threading time timeit traceback types unittest
    urllib uuid warnings xml zipfile zlib abc __future__
    """
NOT_FLAX = frozenset(_NOT_FLAX.split())
# Builtins whose results may be anything; what the others return is no module.
OPEN_BUILTINS = frozenset(
    {"getattr", "next", "iter", "max", "min", "eval", "vars", "globals", "locals", "__import__"}
    | {"reversed", "sorted", "enumerate", "zip", "map", "filter", "type", "list", "tuple", "dict"}
)
# Calls whose value is their first argument, as far as being a module or a module class goes.
HANDS_ON = frozenset(
    {
        "functools.partial",
        "jax.tree_util.Partial",
        "copy.copy",
        "copy.deepcopy",
        "dataclasses.replace",
        "nnx_migrate.linen.as_lazy",
    }
)
# Transforms that turn a module class into a module class: of flax.linen (flax 0.12.8), and those that
# migrated code calls instead.
_LIFTED = """
    remat checkpoint scan vmap jit map_variables add_metadata_axis remat_scan transforms.remat
    transforms.checkpoint transforms.scan transforms.vmap transforms.jit
    transforms.map_variables transforms.add_metadata_axis transforms.remat_scan
    """
LIFTED = frozenset(
    f"{home}.{name}" for home in ("flax.linen", "nnx_migrate.nn") for name in _LIFTED.split()
)
TO_LINEN = frozenset({"flax.nnx.bridge.ToLinen", "flax.nnx.bridge.wrappers.ToLinen"})
MAKES_LINEN = frozenset({"flax.nnx.bridge.to_linen", "flax.nnx.bridge.wrappers.to_linen"})
# Calls that make a class with Linen's methods of one that has none. It is NNX, and no Linen is left there.
LAZY_CLASSES = frozenset({"nnx_migrate.linen.lazy"})
LAZY_MODULE = "nnx_migrate.linen.Module"
TO_NNX = frozenset(("flax.nnx.bridge.ToNNX", "flax.nnx.bridge.wrappers.ToNNX"))
# NNX modules that do have Linen's methods.
BRIDGE_MODULES = frozenset({"flax.nnx.bridge.Module", "flax.nnx.bridge.module.Module"})


def is_class_name(name: str) -> bool:
    """Whether a Flax name is a class's: Flax spells classes, and nothing else, with a capital."""
    return name.rpartition(".")[2][:1].isupper()
