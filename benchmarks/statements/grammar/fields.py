"""Fields that hold layers, classes, partials, functions, configurations, choices by name."""

from benchmarks.statements.grammar.topics import Field, Topic

FIELDS = Topic(
    fields={
        "Layer": Field("nn.Module", "", ("nn.Dense(4)", "Block(3)", "Pair((3, 2))")),
        "Norm": Field(
            "Any",
            "nn.LayerNorm",
            ("nn.RMSNorm", "functools.partial(nn.LayerNorm, use_bias=False)", "nn.LayerNorm"),
        ),
        "Dense": Field(
            "Any",
            "functools.partial(nn.Dense, use_bias=False)",
            ("nn.Dense", "Block", "functools.partial(Block, depth=2)"),
        ),
        "Act": Field("Callable", "nn.relu", ("nn.gelu", "jnp.tanh", "nn.silu")),
        "Mode": Field("str", "'relu'", ("'relu'", "'tanh'")),
        "Cfg": Field(
            "Config",
            "Config()",
            ("Config(width=5)", "Config(widths=(4,), act='tanh')", "Config(use_norm=True)"),
        ),
        "Pairs": Field("Any", "((3, 1), (4, 2))", ("((2, 2),)", "[(5, 1), (3, 1)]")),
        "Maybe": Field("Optional[int]", "None", ("4", "None")),
        "Bias": Field("Callable", "nn.initializers.zeros", ("nn.initializers.ones",)),
    },
    expressions={
        "int": """\
self.<old Cfg>.width
self.<old Cfg>.width
self.<old Cfg>.depth
self.<old Cfg>.widths[0]
self.<old Pairs>[0][0]
self.<old Pairs>[-1][1]
self.<old Maybe> or <int>
(<int> if self.<old Maybe> is None else self.<old Maybe>)
{'relu': 3, 'tanh': 4}[self.<old Mode>]""",
        "list": """\
list(self.<old Cfg>.widths)
[w for w, _ in self.<old Pairs>]
[w + d for w, d in self.<old Pairs>]
[self.<old Cfg>.width] * self.<old Cfg>.depth""",
        "test": """\
self.<old Mode> == 'relu'
self.<old Mode> in ('tanh', 'gelu')
self.<old Cfg>.use_norm
self.<old Cfg>.depth > 1
self.<old Maybe> is not None
len(self.<old Pairs>) > 1""",
        "layer": """\
self.<old Norm>()
self.<old Norm>(epsilon=1e-3)
self.<old Dense>(<int>)
self.<old Dense>(<int>)
Block(<int>, act=self.<old Act>)
Block(<int>, 1, self.<old Act>)
Head(self.<old Cfg>)
Head(cfg=self.<old Cfg>, norm=self.<old Norm>)
Head(Config(width=<int>))
(nn.Dense if self.<old Mode> == 'relu' else Block)(<int>)
{'relu': Block, 'tanh': nn.Dense}[self.<old Mode>](<int>)
norm_of(self.<old Mode>)
nn.Dense(<int>, bias_init=self.<old Bias>)
nn.Sequential([self.<old Dense>(<int>), self.<old Act>])
nn.Sequential([Block(w, depth=d) for w, d in self.<old Pairs>])""",
    },
    statements={
        "compact": """\
for w, d in self.<old Pairs>:
    <old array 1> = Block(w, depth=d)(<old array 1>)
---
for i, (w, d) in enumerate(self.<old Pairs>):
    for j in range(d):
        <old array 1> = nn.Dense(w, name=f'<new module>_{i}_{j}')(<old array 1>)
---
for i in range(self.<old Cfg>.depth):
    <old array 1> = self.<old Act>(nn.Dense(self.<old Cfg>.width)(<old array 1>))
---
if self.<old Cfg>.use_norm:
    <old array 1> = nn.LayerNorm()(<old array 1>)
---
<old array 1> = ACTS[self.<old Mode>](<layer>(<old array 1>))
---
<old array 1> = getattr(nn, self.<old Mode>)(<layer>(<old array 1>))
---
<new module 1> = functools.partial(self.<old Dense>, name='<new module 1>')
<old array 2> = <new module 1>(<int>)(<old array 2>)
---
if self.<old Maybe> is not None:
    <old array 1> = nn.Dense(self.<old Maybe>)(<old array 1>)""",
        "setup": """\
self.<new Parts 1> = [Block(w, d) for w, d in self.<old Pairs>]
>>>for one in self.<new Parts 1>:
>>>    x = one(x)
---
self.<new Part 1> = [self.<old Dense>(self.<old Cfg>.width) for _ in range(self.<old Cfg>.depth)]
>>>for one in self.<new Part 1>:
>>>    x = self.<old Act>(one(x))
---
self.<new Cfg> = self.<old Cfg>
---
if self.<old Mode> == 'relu':
    self.<new Part 1> = <layer>
else:
    self.<new Part 1> = <layer>
>>>x = self.<new Part 1>(x)
---
if self.<old Cfg>.use_norm:
    self.<new Part 1> = self.<old Norm>()
>>>if self.<old Cfg>.use_norm:
>>>    x = self.<new Part 1>(x)""",
        "call": """\
<old array 1> = self.<old Act>(<old array 1>)
---
<old array 1> = ACTS[self.<old Mode>](<old array 1>)
---
<old array 1> = self.<old Layer>(<old array 1>)
---
<old array 1> = self.<old Layer>(<old array 1>)
---
if self.<old Mode> == 'relu':
    <old array 1> = nn.relu(<old array 1>)
---
for w, d in self.<old Pairs>:
    <old array 1> = <old array 1> * w + d""",
    },
)
