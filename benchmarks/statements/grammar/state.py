"""What ``setup`` keeps for other methods beside layers: numbers, lists, dicts, functions, partials."""

from benchmarks.statements.grammar.topics import Topic

STATE = Topic(
    expressions={
        "int": """\
self.<old Width>
self.<old Width>
self.<old Width>
self.<old Width> + 1
self.<old Listed>[0]
self.<old Listed>[-1]
len(self.<old Listed>)
self.<old Keyed>['a']
self.<old Keyed>.get('c', 3)
self.<old Function>(<int>)""",
        "list": """\
self.<old Listed>
self.<old Listed>
list(self.<old Listed>)
[w + 1 for w in self.<old Listed>]
list(self.<old Keyed>.values())""",
        "dict": """\
self.<old Keyed>
dict(self.<old Keyed>, b=<int>)""",
        "test": """\
self.<old Fact>
not self.<old Fact>
self.<old Width> > 3
len(self.<old Listed>) > 2""",
        "layer": """\
self.<old Maker>(<int>)
self.<old Maker>(self.<old Width>)""",
    },
    statements={
        "setup": """\
self.<new Width> = <int>
---
self.<new Width> = <int>
---
self.<new Width 1> = self.<new Width 2> = <int>
---
self.<new Width>, self.<new Width> = <int>, <int>
---
self.<new Listed> = <list>
---
self.<new Listed> = tuple(<list>)
---
self.<new Keyed> = <dict>
---
self.<new Fact> = <test>
---
self.<new Function> = lambda n: n + <int>
---
self.<new Function> = double
---
self.<new Act> = nn.relu if <test> else nn.tanh
---
self.<new Act> = functools.partial(nn.gelu, approximate=<test>)
---
self.<new Maker> = functools.partial(nn.Dense, use_bias=<test>)
---
self.<new Maker> = Block if <test> else nn.Dense
---
if <test>:
    self.<new Width 1> = <int>
else:
    self.<new Width 1> = <int>
---
self.<new Parts 1> = [Block(w) for w in <list>]
self.<new Listed 2> = [i for i in range(len(self.<new Parts 1>))]
>>>for i in self.<new Listed 2>:
>>>    x = self.<new Parts 1>[i](x)
---
self.<new Parts 1> = [nn.Dense(w) for w in <list>]
self.<new Acts 2> = [nn.relu, jnp.tanh, nn.gelu]
>>>for layer, act in zip(self.<new Parts 1>, self.<new Acts 2>):
>>>    x = act(layer(x))
---
self.<new Part 1> = {'a': nn.Dense(<int>), 'b': nn.Dense(<int>)}
self.<new Key 2> = 'a' if <test> else 'b'
>>>x = self.<new Part 1>[self.<new Key 2>](x)
---
self.<new Parts 1> = [(nn.Dense(w), nn.LayerNorm()) for w in <list>]
>>>for dense, norm in self.<new Parts 1>:
>>>    x = norm(dense(x))
---
for i, w in enumerate(<list>):
    setattr(self, f'<new box 1>_{i}', nn.Dense(w))
>>>x = self.<new box 1>_0(x)""",
        "call": """\
<old array 1> = self.<old Act>(<old array 1>)
---
<old array 1> = self.<old Act>(<old array 1>)
---
for i in range(self.<old Width>):
    <old array 1> = <old array 1> + i
---
for w in self.<old Listed>:
    <old array 1> = <old array 1> * w
---
<old array 1> = <old array 1>[..., :self.<old Width>]
---
<old array 1> = <old array 1> + self.<old Keyed>['a']
---
if <test>:
    <old array 1> = <old array 1> * <int>
---
<old array 1> = jnp.pad(<old array 1>, ((0, 0), (0, self.<old Width>)))""",
    },
)
