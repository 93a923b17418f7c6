"""Lifted classes of fixed text: remat, scan and vmap."""

from benchmarks.statements.grammar.topics import Topic

_SCAN = "nn.scan(Step, variable_axes={'params': 0}, split_rngs={'params': True}, length=<int>)"
_MAP = (
    "nn.vmap(Block, variable_axes={'params': 0}, split_rngs={'params': True}, "
    "in_axes=None, out_axes=1, axis_size=<int>)"
)
_SHARED = "nn.vmap(Block, variable_axes={'params': None}, split_rngs={'params': False})"

LIFTS = Topic(
    expressions={
        "layer": """\
nn.remat(Block)(<int>)
nn.remat(Pair)(<list>)
nn.checkpoint(Block)(<int>, depth=<int>)"""
    },
    statements={
        "compact": f"""\
<old array 1>, _ = {_SCAN}(<old array 1>.shape[-1])(<old array 1>, None)
---
<new module 1> = {_SCAN}
<old array 2>, <new box 3> = <new module 1>(<old array 2>.shape[-1], name='<new module 1>')(<old array 2>, None)
<old array 2> = <old array 2> + <new box 3>.sum()
---
<old array 1> = flat({_MAP}(<int>)(<old array 1>))
---
<old array 1> = flat({_SHARED}(<int>)(jnp.stack([<old array 1>, <old array 1>], 1)))
---
<new module 1> = nn.remat(Block)
for w in <list>:
    <old array 2> = <new module 1>(w)(<old array 2>)
---
<old array 1> = nn.remat(Drop, static_argnums=(2,))(<int>)(<old array 1>, <old train>)
---
<old array 1> = nn.remat(Drop)(<int>)(<old array 1>)""",
        "setup": f"""\
self.<new Part 1> = {_MAP}(<int>)
>>>x = flat(self.<new Part 1>(x))
---
self.<new Part 1> = nn.Dense(<int 3>)
self.<new Part 2> = {_SCAN}(<int 3>)
>>>x, _ = self.<new Part 2>(self.<new Part 1>(x), None)
---
self.<new Parts 1> = [nn.remat(Block)(w) for w in <list>]
>>>for one in self.<new Parts 1>:
>>>    x = one(x)""",
    },
)
