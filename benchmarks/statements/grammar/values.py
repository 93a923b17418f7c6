"""Numbers, lists and dicts as published model code writes them."""

from benchmarks.statements.grammar.topics import Field, Topic

VALUES = Topic(
    fields={
        "Number": Field("int", "3", ("2", "4", "5")),
        "Sizes": Field("Sequence[int]", "(3, 4)", ("[4, 2]", "(5, 3, 4)", "[3, 3]")),
        "Table": Field("Any", "", ("dict(a=3, b=4)", '{"a": 5, "b": 2, "c": 3}')),
        "Flag": Field("bool", "True", ("True", "False")),
    },
    expressions={
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
<old list 1>[len(<old list 1>) // 2]
sorted(<old list>)[0]
pick(<old list>)
pick(<old list>, 1)
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
(<int> if <test> else <int>)
table(<int>)['a']
<old function>(<int>)
<old array>.shape[-1]
<old array>.shape[1]
self.<old Number>
self.<old Number>
self.<old Sizes>[0]
self.<old Sizes>[-1]
len(self.<old Sizes>)
self.<old Table>['a']
(3 if self.<old Flag> else 4)""",
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
<old list> + [<int>]
[*<old list>, <int>]
(<old list> if <test> else <list>)
list(WIDTHS)
WIDTHS[:2]
list(<old dict>.values())
[v + 1 for v in <old dict>.values()]
list(range(2, 5))
[2 ** i for i in range(1, 3)]
list(self.<old Sizes>)
list(self.<old Sizes>)
[w + 1 for w in self.<old Sizes>]
self.<old Sizes>[1:]""",
        "dict": """\
{'a': <int>, 'b': <int>}
{'a': <int>, 'b': <int>}
dict(a=<int>, b=<int>)
dict(TABLE)
<old dict>
dict(<old dict>, b=<int>)
{**<old dict>, 'c': <int>}
{k: v + 1 for k, v in <old dict>.items()}
dict(zip('ab', <old list>))
dict(self.<old Table>)""",
        "test": """\
<int> > 3
<int> > 3
<int> % 2
<int> == <int>
<int> > 2 and <int> < 5
self.<old Flag>
self.<old Flag>
not self.<old Flag>
len(<old list>) > 2
3 in <old list>
'c' in <old dict>
any(w > 4 for w in <old list>)
<old array>.shape[-1] > 3
<old array>.ndim == 2""",
    },
    statements={
        "plain": """\
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
<old list>.append(<int>)
---
<old list>.extend([<int>, <int>])
---
<old list>.extend(self.<old Sizes>)
---
<old list>.pop()
---
<new int> = <old list>.pop()
---
<old list>[0] = <int>
---
<old list>[-1] += 1
---
<old list> += [<int>]
---
<new list 1> = []
for <new int 2> in <list>:
    <new list 1>.append(<new int 2>)
---
<old dict>['a'] = <int>
---
<old dict>['b'] += 1
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
<new int>, <new int> = <int>, <int>
---
assert <int> > 0""",
        "nested": """\
for <new int> in <old list>:
    <block>
---
for <new int> in <list>:
    <block>
---
for <new int> in <old list>[:2]:
    <block>
    if <test>: continue
    <block>
---
for <new int> in range(1, 3):
    <block>
---
for <new box>, <new int> in enumerate(<old list>[:3]):
    <block>
---
for <new int>, <new int> in zip(<old list>[:2], <old list>):
    <block>
---
for <new box>, <new int> in <old dict>.items():
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
elif <test>:
    <block>
else:
    <block>
---
<new function> = lambda n: <old int> + n
---
def <new function>(n):
    return <old int> + n
---
<new function> = functools.partial(operator.add, <int>)""",
    },
)
