"""What is drawn: templates of expressions and statements, by kind.

``<list>`` is drawn anew, ``<old list>`` is a local that holds one, ``<new list>`` a name for one, and a
number behind it says that two are the same: ``<old list 1>[0] = <old list 1>[-1]``. A line of ``<block>``
is some statements, after which the names that they bind are forgotten. Templates that stand twice are
drawn twice as often.
"""

from __future__ import annotations

PRELUDE = """\
import bisect, collections, copy, functools, heapq, itertools, math, operator
from typing import Any, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

WIDTHS = [3, 4, 5]
TABLE = {"a": 3, "b": 5}


def grow(ws, n=4):
    ws.append(n)
    return ws


def pick(ws, i=0):
    return ws[i]


def put(d, key, n):
    d[key] = n
    return d


def double(n):
    return n * 2 % 7 + 1


def rotate(ws):
    ws.append(ws.pop(0))


def both(function, ws):
    return [function(w) for w in ws]


def table(n):
    return {"a": n, "b": n + 1}


def ranks(n=3):
    for i in range(2, n + 2):
        yield i


class Count:
    def __init__(self, n=2):
        self.n = n
        self.seen = []

    def step(self):
        self.n += 1
        self.seen.append(self.n)
        return self.n

    def peek(self):
        return self.n


def use(count):
    return count.step()


class Block(nn.Module):
    width: int
    depth: int = 1
    act: Any = nn.relu

    @nn.compact
    def __call__(self, x):
        for i in range(self.depth):
            x = self.act(nn.Dense(self.width)(x))
        return x


class Pair(nn.Module):
    widths: Sequence[int] = (3, 4)

    def setup(self):
        self.layers = [nn.Dense(w) for w in self.widths]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""

# Fields by kind: annotation, default ("" for none), and values that a call gives.
FIELDS = {
    "number": ("int", "3", ("2", "4", "5")),
    "sizes": ("Sequence[int]", "(3, 4)", ("[4, 2]", "(5, 3, 4)", "[3, 3]")),
    "table": ("Any", "", ("dict(a=3, b=4)", '{"a": 5, "b": 2, "c": 3}')),
    "flag": ("bool", "True", ("True", "False")),
}

EXPRESSIONS = {
    "int": """\
2
3
4
5
<old int>
<old int>
<old int>
<old int>
<old list>[0]
<old list>[0]
<old list>[-1]
<old list>[1]
<old dict>['a']
<old dict>['b']
<old dict>.get('c', <int>)
len(<old dict>) + 1
len(<old list>) + 1
max(<old list>)
min(<old list>)
sum(<old list>) % 5 + 2
functools.reduce(operator.add, <old list>) % 5 + 2
<old list>.pop()
<old list>.pop(0)
heapq.heappop(<old list>)
<old list>.count(3) + 2
<old list 1>[<old list 1>.index(min(<old list 1>))]
<old list 1>[len(<old list 1>) // 2]
<old list>.copy().pop()
pick(<old list>)
pick(<old list>, 1)
grow(<old list>)[-1]
sorted(<old list>)[0]
(*<old list>, 3)[0]
next(iter(<list>))
next(w for w in <old list> if w > 1)
double(<int>)
<int> + 1
<int> + 1
max(<int> - 1, 2)
min(<int>, <int>)
<int> * 2 % 5 + 1
<int> // 2 + 1
int(<int> * 1.5)
round(<int> / 2) + 1
math.ceil(<int> / 2) + 1
abs(<int> - 9)
operator.add(<int>, 1)
np.prod((<int>, 2)).item() % 7 + 1
len(str(<int>)) + 2
int('3' if <test> else '4')
(<int> if <test> else <int>)
(lambda w: w + 1)(<int>)
(<new int> := <int>)
(<old int> := <int>)
getattr(self, 'missing', <int>)
table(<int>)['a']
<old count>.step()
<old count>.peek()
<old count>.n
use(<old count>)
<old function>()
<old function>()
<old array>.shape[-1]
<old array>.shape[1]
self.<old number>
self.<old number>
self.<old sizes>[0]
self.<old sizes>[-1]
self.<old table>['a']
(3 if self.<old flag> else 4)
self.<old state>
self.<old state>""",
    "list": """\
[<int>, <int>]
[<int>, <int>]
[<int>, <int>, <int>]
[<int>] * 2
<old list>
<old list>
list(<old list>)
<old list>[:]
<old list>[::-1]
<old list 1>[1:] or <old list 1>
sorted(<old list>)
list(reversed(<old list>))
[w + 1 for w in <old list>]
[w + 1 for w in <old list> if w % 2]
[<int> for w in <old list>]
[i + w for i, w in enumerate(<old list>)]
[a for a, b in zip(<old list>, <old list>)]
[w for ws in (<old list>, <old list>) for w in ws]
<old list> + [<int>]
[*<old list>, <int>]
list(map(double, <old list>))
both(lambda w: w + 1, <old list>)
grow(<old list>, <int>)
copy.copy(<old list>)
list(itertools.chain(<old list>, [<int>]))
list(filter(lambda w: w > 2, <old list>))
list(itertools.accumulate(<old list>, max))
list(dict.fromkeys(<old list>))
np.cumsum(<old list>).tolist()
(<old list> if <test> else <list>)
list(WIDTHS)
WIDTHS[:2]
copy.deepcopy(WIDTHS)
list(<old dict>.values())
[v + 1 for v in <old dict>.values()]
list(table(<int>).values())
list(ranks(<int>))
list(range(2, 5))
list(self.<old sizes>)
list(self.<old sizes>)
[w + 1 for w in self.<old sizes>]""",
    "dict": """\
{'a': <int>, 'b': <int>}
{'a': <int>, 'b': <int>}
dict(a=<int>, b=<int>)
dict(TABLE)
<old dict>
dict(<old dict>)
dict(<old dict>, b=<int>)
{**<old dict>, 'c': <int>}
{k: v + 1 for k, v in <old dict>.items()}
<old dict>.copy()
put(<old dict>, 'a', <int>)
dict(zip('ab', <old list>))
collections.OrderedDict(a=<int>, b=<int>)
collections.defaultdict(lambda: 3, a=<int>, b=2)
dict(self.<old table>)""",
    "test": """\
<int> > 3
<int> > 3
<int> % 2
<int> == <int>
<int> > 2 and <int> < 5
self.<old flag>
self.<old flag>
not self.<old flag>
len(<old list>) > 2
3 in <old list>
'c' in <old dict>
any(w > 4 for w in <old list>)
<old array>.shape[-1] > 3
<old array>.ndim == 2""",
    "layer": """\
nn.Dense(<int>)
nn.Dense(<int>)
nn.Dense(<int>)
nn.Dense(features=<int>, use_bias=False)
functools.partial(nn.Dense, use_bias=False)(<int>)
nn.LayerNorm()
Block(<int>)
Block(<int>, depth=2)
Pair(<list>)
Pair(tuple(<list>))
nn.Sequential([nn.Dense(<int>), nn.relu, nn.Dense(<int>)])
nn.Sequential([nn.Dense(w) for w in <list>])""",
}

# Statements are apart from each other by a line of ``---``.
_PLAIN = """\
<new int> = <int>
---
<new int> = <int>
---
<old int> = <int>
---
<new list> = <list>
---
<new list> = <list>
---
<old list> = <list>
---
<new list> = <old list>
---
<new dict> = <dict>
---
<old dict> = <dict>
---
<old list>.append(<int>)
---
<old list>[0] = <int>
---
<old list>[-1] += 1
---
<old list> += [<int>]
---
<old list> *= 2
---
<old list>.extend([<int>, <int>])
---
<old list>.reverse()
---
<old list>.sort()
---
<old list>.insert(0, <int>)
---
<old list>[:1] = [<int>]
---
<old list 1>[1:] = <old list 1>[:1]
---
<old list>.pop()
---
del <old list>[0]
---
rotate(<old list>)
---
grow(<old list>)
---
bisect.insort(<old list>, <int>)
---
<old list 1>.remove(<old list 1>[0])
---
<old list 1>[0], <old list 1>[-1] = <old list 1>[-1], <old list 1>[0]
---
_ = [<old list 1>.append(v) for v in (3, 2)]
---
list(map(<old list>.append, (4, 2)))
---
<old list>.__setitem__(0, <int>)
---
<new box 1> = {'w': <old list>}
<new box 1>['w'].append(<int>)
---
<new box 1> = (<old list>, 1)
<new box 1>[0][0] = <int>
---
(<old list> if <test> else []).append(<int>)
---
<new box 1> = <old list>.append
<new box 1>(<int>)
---
<new box 1> = functools.partial(<old list>.insert, 0)
<new box 1>(<int>)
---
<old dict>['a'] = <int>
---
<old dict>['b'] += 1
---
<old dict>.update(a=<int>)
---
<old dict>.setdefault('c', <int>)
---
put(<old dict>, 'b', <int>)
---
<old dict 1>['a'], <old dict 1>['b'] = <old dict 1>['b'], <old dict 1>['a']
---
<old dict> |= {'a': <int>}
---
<old int> += 1
---
<old int> *= 2
---
<old int 1> = max(<old int 1> - 1, 2)
---
<new int>, <new int> = <old list>[:2]
---
<new int 1>, *<new box 2> = <old list>
---
<new int> = <new int> = <old list>[0]
---
<new int>, <new int> = <int>, <int>
---
(<new int>, (<new int>, _)) = (<int>, (<int>, 1))
---
<new int>, <new int> = sorted(<old list>)[:2]
---
<new count> = Count(<int>)
---
<new count> = <old count>
---
<old count>.step()
---
<old count>.n = <int>
---
use(<old count>)
---
assert <int> > 0"""
_NESTED = """\
for <new int> in <old list>:
    <block>
---
for <new int> in list(<old list>):
    <block>
    if <test>: break
---
for <new int> in <old list>[:2]:
    <block>
    if <test>: continue
    <block>
---
for <old int> in sorted(<old list>):
    <block>
---
for <new int 1> in range(1, 3):
    <new int 1> += 1
    <block>
---
for <new box>, <new int> in enumerate(<old list>[:3]):
    <block>
else:
    <block>
---
for <new int>, <new int> in zip(<old list>[:2], <old list>):
    <block>
---
for <new box>, <new int> in list(<old dict>.items()):
    <block>
---
while <old int 1> < 5:
    <old int 1> += 1
    <block>
---
if <test>:
    <block>
---
if <test>:
    <block>
else:
    <block>
---
if <test>:
    <block>
else:
    <block>
---
try:
    <block>
finally:
    <block>
---
try:
    <block>
except KeyError:
    pass
---
match <int>:
    case 3:
        <block>
    case _:
        <block>
---
def <new function>():
    <old list 1>.append(<int>)
    return <old list 1>[-1]
---
def <new function>():
    return <old list>.pop()
---
def <new function>():
    nonlocal <old int 1>
    <old int 1> += 1
    return <old int 1>
---
<new function> = lambda: <old int> + 1
---
def <new function>(acc=[<int>]):
    acc.append(len(acc) + 4)
    return acc[-1]
---
<new function> = functools.partial(double, <int>)"""
_COMPACT = """\
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
<new module 1> = self.param('<new module 1>', nn.initializers.normal(), (<old array 2>.shape[-1], <int>))
<old array 2> = <old array 2> @ <new module 1>
---
<old array 1> = nn.tanh(<old array 1>)
---
<old array 1> = <old array 1> + nn.Dense(<old array 1>.shape[-1])(<old array 1>)
---
<old array 1> = jnp.concatenate([<old array 1>, <old array>], axis=-1)
---
<old array 1> = <old array 1>[..., :2]
---
<old array 1> = jnp.repeat(<old array 1>, 2, axis=-1)
---
<old array 1> = <old array 1>.reshape(<old array 1>.shape[0], -1)
---
<old array 1> = jnp.pad(<old array 1>, ((0, 0), (0, <int>)))"""
# In ``setup``; behind ``>>>`` stands what ``__call__`` does.
_SETUP = """\
self.<new module 1> = <layer>
>>>x = self.<new module 1>(x)
---
self.<new module 1> = <layer>
>>>x = self.<new module 1>(x)
---
self.<new module 1> = [nn.Dense(w) for w in <list>]
>>>for one in self.<new module 1>:
>>>    x = one(x)
---
<new box 2> = []
for w in <list>:
    <new box 2>.append(nn.Dense(w))
self.<new module 1> = <new box 2>
>>>for i in range(len(self.<new module 1>)):
>>>    x = self.<new module 1>[i](x)
---
<new box 2> = [nn.Dense(<int>)]
<statement>
<new box 2> += [nn.Dense(w) for w in <list>]
self.<new module 1> = <new box 2>
>>>x = self.<new module 1>[0](x)
>>>for one in self.<new module 1>[1:]:
>>>    x = one(x)
---
self.<new module 1> = {f'k{i}': nn.Dense(w) for i, w in enumerate(<list>)}
>>>x = jnp.concatenate([one(x) for one in self.<new module 1>.values()], -1)
---
self.<new state> = <int>
---
self.<new state> = <int>"""


def _apart(*texts: str) -> tuple[str, ...]:
    return tuple(one for text in texts for one in text.split("\n---\n"))


STATEMENTS = {
    "plain": _apart(_PLAIN),
    "nested": _apart(_NESTED),
    "compact": _apart(_COMPACT),
    "setup": _apart(_SETUP),
}
