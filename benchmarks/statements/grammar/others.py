"""Statements and expressions that published model code does without: a class that has one is lazy."""

from benchmarks.statements.grammar.topics import Topic

OTHERS = Topic(
    expressions={
        "int": """\
functools.reduce(operator.add, <old list>) % 5 + 2
<old list>.pop()
<old list>.pop(0)
heapq.heappop(<old list>)
<old list>.count(3) + 2
<old list 1>[<old list 1>.index(min(<old list 1>))]
<old list>.copy().pop()
grow(<old list>)[-1]
(*<old list>, 3)[0]
next(iter(<list>))
next(w for w in <old list> if w > 1)
abs(<int> - 9)
operator.add(<int>, 1)
np.prod((<int>, 2)).item() % 7 + 1
len(str(<int>)) + 2
int('3' if <test> else '4')
(lambda w: w + 1)(<int>)
(<new int> := <int>)
(<old int> := <int>)
getattr(self, 'missing', <int>)
<old count>.step()
<old count>.peek()
<old count>.n
use(<old count>)
<old thunk>()
<old thunk>()""",
        "list": """\
[w for ws in (<old list>, <old list>) for w in ws]
list(map(double, <old list>))
both(lambda w: w + 1, <old list>)
grow(<old list>, <int>)
copy.copy(<old list>)
list(itertools.chain(<old list>, [<int>]))
list(filter(lambda w: w > 2, <old list>))
list(itertools.accumulate(<old list>, max))
list(dict.fromkeys(<old list>))
np.cumsum(<old list>).tolist()
copy.deepcopy(WIDTHS)
list(table(<int>).values())
list(ranks(<int>))""",
        "dict": """\
dict(<old dict>)
<old dict>.copy()
put(<old dict>, 'a', <int>)
collections.OrderedDict(a=<int>, b=<int>)
collections.defaultdict(lambda: 3, a=<int>, b=2)""",
    },
    statements={
        "plain": """\
<old list> *= 2
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
<new int> = <new int> = <old list>[0]
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
use(<old count>)""",
        "nested": """\
for <new int> in list(<old list>):
    <block>
    if <test>: break
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
for <new box>, <new int> in list(<old dict>.items()):
    <block>
---
while <old int 1> < 5:
    <old int 1> += 1
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
def <new thunk>():
    <old list 1>.append(<int>)
    return <old list 1>[-1]
---
def <new thunk>():
    return <old list>.pop()
---
def <new thunk>():
    nonlocal <old int 1>
    <old int 1> += 1
    return <old int 1>
---
<new thunk> = lambda: <old int> + 1
---
def <new thunk>(acc=[<int>]):
    acc.append(len(acc) + 4)
    return acc[-1]
---
<new thunk> = functools.partial(double, <int>)""",
    },
)
