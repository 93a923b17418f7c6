"""Methods beside ``__call__``: what computes widths and what calls or builds layers."""

from benchmarks.statements.grammar.topics import Method, Topic

METHODS = Topic(
    methods=(
        Method("Measure", "def NAME(self, n):", {"int": "n"}, "return <int>"),
        Method("Measure", "def NAME(self, n, k=2):", {"int": "n"}, "return n + k"),
        Method("Property", "@property\ndef NAME(self):", {}, "return <int>"),
        Method("Series", "def NAME(self, n):", {"int": "n"}, "return <list>"),
        Method("Check", "def NAME(self, n):", {"int": "n"}, "return <test>"),
        Method("Pass", "def NAME(self, x):", {"array": "x"}, "return x", calls_layers=True),
        Method("Pass", "def NAME(self, x):", {"array": "x"}, "return x", calls_layers=True),
        Method("Resized", "def NAME(self, x, n):", {"array": "x", "int": "n"}, "return x", True),
        Method("Forked", "def NAME(self, x):", {"array": "x"}, "return x, <old array>", True),
    ),
    expressions={
        "int": """\
self.<old Measure>(<int>)
self.<old Measure>(<int>)
self.<old Measure>(n=<int>)
self.<old Property>
self.<old Property>
self.<old Series>(<int>)[0]
len(self.<old Series>(3))""",
        "list": """\
self.<old Series>(<int>)
[self.<old Measure>(w) for w in <list>]
[self.<old Property>, <int>]""",
        "test": """\
self.<old Check>(<int>)
self.<old Property> > 3""",
    },
    statements={
        "call": """\
<old array 1> = self.<old Pass>(<old array 1>)
---
<old array 1> = self.<old Pass>(<old array 1>)
---
<new array> = self.<old Pass>(<old array>)
---
<old array 1> = self.<old Resized>(<old array 1>, <int>)
---
<old array 1> = self.<old Resized>(<old array 1>, n=<int>)
---
<old array 1>, <new array> = self.<old Forked>(<old array 1>)
---
if <test>:
    <old array 1> = self.<old Pass>(<old array 1>)
---
for <new int> in range(2):
    <old array 1> = self.<old Pass>(<old array 1>)
---
for <new int 1> in <list>:
    <old array 2> = self.<old Resized>(<old array 2>, <new int 1>)""",
    },
)
