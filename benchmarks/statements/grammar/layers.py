"""Layers built in a compact method or in ``setup``, called at once or later."""

from benchmarks.statements.grammar.topics import Topic

LAYERS = Topic(
    expressions={
        "layer": """\
nn.Dense(<int>)
nn.Dense(<int>)
nn.Dense(<int>)
nn.Dense(features=<int>, use_bias=False)
functools.partial(nn.Dense, use_bias=False)(<int>)
nn.LayerNorm()
Block(<int>)
Block(<int>, depth=2)
Block(width=<int>, act=jnp.tanh)
Pair(<list>)
Pair(tuple(<list>))
nn.Sequential([nn.Dense(<int>), nn.relu, nn.Dense(<int>)])
nn.Sequential([nn.Dense(w) for w in <list>])"""
    },
    statements={
        "compact": """\
<old array 1> = <layer>(<old array 1>)
---
<old array 1> = <layer>(<old array 1>)
---
<old array 1> = <layer>(<old array 1>)
---
<new array> = <layer>(<old array>)
---
<new module 1> = <layer>
<old array 2> = <new module 1>(<old array 2>)
---
<new module 1> = <layer>
<statement>
<old array 2> = <new module 1>(<old array 2>)
---
<new module 1> = [nn.Dense(w) for w in <list>]
for one in <new module 1>:
    <old array 2> = one(<old array 2>)
---
<new module 1> = []
for w in <list>:
    <new module 1>.append(nn.Dense(w))
for one in <new module 1>:
    <old array 2> = one(<old array 2>)
---
for w in <list>:
    <old array 2> = nn.Dense(w)(<old array 2>)
---
<new module 1> = [nn.Dense(w)(<old array 2>) for w in <list>]
<old array 2> = jnp.concatenate(<new module 1>, -1)
---
<new module 1> = {str(i): nn.Dense(w) for i, w in enumerate(<list>)}
<old array 2> = jnp.concatenate([one(<old array 2>) for one in <new module 1>.values()], axis=-1)
---
for i, w in enumerate(<list>):
    <old array 2> = nn.Dense(w, name=f'<new module>_{i}')(<old array 2>)
---
<new module 1> = functools.partial(nn.Dense, use_bias=<test>)
<old array 2> = <new module 1>(<int>)(<old array 2>)
<old array 2> = <new module 1>(<int>)(<old array 2>)
---
<old array 1> = <old array 1> + nn.Dense(<old array 1>.shape[-1])(<old array 1>)
---
<new array 1> = <old array 2>
for w in <list>:
    <new array 1> = <layer>(<new array 1>)
<old array 2> = jnp.concatenate([<old array 2>, <new array 1>], -1)""",
        "call": """\
<old array 1> = nn.tanh(<old array 1>)
---
<old array 1> = jnp.concatenate([<old array 1>, <old array>], axis=-1)
---
<old array 1> = <old array 1>[..., :2]
---
<old array 1> = jnp.repeat(<old array 1>, 2, axis=-1)
---
<old array 1> = jnp.pad(<old array 1>, ((0, 0), (0, <int>)))
---
<new array> = <old array> * <int>
---
<old array 1> = <old array 1> / <old array 1>.shape[-1]
---
<old array 1> = flat(jnp.stack([<old array 1>, <old array 1> + <int>], axis=1))""",
        "setup": """\
self.<new Part 1> = <layer>
>>>x = self.<new Part 1>(x)
---
self.<new Part 1> = <layer>
>>>x = self.<new Part 1>(x)
---
self.<new Parts 1> = [nn.Dense(w) for w in <list>]
>>>for one in self.<new Parts 1>:
>>>    x = one(x)
---
<new box 2> = []
for w in <list>:
    <new box 2>.append(nn.Dense(w))
self.<new Parts 1> = <new box 2>
>>>for i in range(len(self.<new Parts 1>)):
>>>    x = self.<new Parts 1>[i](x)
---
<new box 2> = [nn.Dense(<int>)]
<statement>
<new box 2> += [nn.Dense(w) for w in <list>]
self.<new Parts 1> = <new box 2>
>>>x = self.<new Parts 1>[0](x)
>>>for one in self.<new Parts 1>[1:]:
>>>    x = one(x)
---
self.<new Part 1> = {f'k{i}': nn.Dense(w) for i, w in enumerate(<list>)}
>>>x = jnp.concatenate([one(x) for one in self.<new Part 1>.values()], -1)
---
self.<new Part 1> = <layer>
self.<new Part 2> = <layer>
>>>x = jnp.concatenate([self.<new Part 1>(x), self.<new Part 2>(x)], -1)
---
self.<new Part 1> = (<layer>, <layer>)
>>>first, second = self.<new Part 1>
>>>x = second(first(x))
---
self.<new Part 1> = <layer> if <test> else <layer>
>>>x = self.<new Part 1>(x)
---
self.<new Part 1> = <layer> if <test> else None
>>>if self.<new Part 1> is not None:
>>>    x = self.<new Part 1>(x)""",
    },
)


def built(text: str, *, has_flag: bool) -> Topic:
    """What is done with a drawn class that ``text`` builds."""
    flag, given = (", train=<old train>", ", train=train") if has_flag else ("", "")
    return Topic(
        expressions={
            "layer": "\n".join([text] * 3 + [f"nn.Sequential([{text}, nn.Dense(<int>)])"])
        },
        statements={
            "compact": f"""\
<old array 1> = {text}(<old array 1>{flag})
---
for i in range(2):
    <old array 1> = {text}(<old array 1>{flag})
---
<new module 1> = [{text} for _ in range(2)]
for one in <new module 1>:
    <old array 2> = one(<old array 2>{flag})""",
            "setup": f"""\
self.<new Part 1> = {text}
>>>x = self.<new Part 1>(x{given})
---
self.<new Parts 1> = [{text} for i in range(2)]
>>>for one in self.<new Parts 1>:
>>>    x = one(x{given})""",
        },
    )
