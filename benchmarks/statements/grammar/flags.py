"""A flag of the call, streams of keys, variables and what is sown."""

from benchmarks.statements.grammar.topics import Topic

FLAGS = Topic(
    statements={
        "compact": """\
<old array 1> = nn.Dropout(0.5, deterministic=not <old train>)(<old array 1>)
---
<old array 1> = nn.Dropout(rate=0.5)(<old array 1>, deterministic=not <old train>)
---
<old array 1> = nn.BatchNorm(use_running_average=not <old train>)(<old array 1>)
---
<old array 1> = nn.BatchNorm(momentum=0.9)(<old array 1>, use_running_average=not <old train>)
---
<old array 1> = Drop(<int>)(<old array 1>, train=<old train>)
---
<old array 1> = Drop(<int>)(<old array 1>, <old train>)
---
<new module 1> = functools.partial(nn.BatchNorm, use_running_average=not <old train>)
<old array 2> = <new module 1>()(<layer>(<old array 2>))
---
for w in <list>:
    <old array 1> = Drop(w)(<old array 1>, train=<old train>)
---
if <test>:
    <old array 1> = nn.Dropout(0.2)(<old array 1>, deterministic=not <old train>)""",
        "setup": """\
self.<new Part 1> = nn.Dropout(0.5)
>>>x = self.<new Part 1>(x, deterministic=not train)
---
self.<new Part 1> = nn.BatchNorm()
>>>x = self.<new Part 1>(x, use_running_average=not train)
---
self.<new Parts 1> = [Drop(w) for w in <list>]
>>>for one in self.<new Parts 1>:
>>>    x = one(x, train)""",
        "call": """\
if <old train>:
    <old array 1> = <old array 1> * 2
---
<old array 1> = <old array 1> + (<int> if <old train> else 1)
---
if <old train> and <test>:
    <old array 1> = <old array 1> + <int>""",
    },
)
VARIABLES = Topic(
    statements={
        "compact": """\
<new module 1> = self.param('<new module 1>', nn.initializers.normal(), (<old array 2>.shape[-1], <int>))
<old array 2> = <old array 2> @ <new module 1>
---
<new module 1> = self.param('<new module 1>', nn.initializers.ones, (<int>,))
<old array 2> = <old array 2> * <new module 1>.sum()
---
<new module 1> = self.variable('state', '<new module 1>', lambda: jnp.zeros(()))
<new module 1>.value += 1
<old array 2> = <old array 2> * <new module 1>.value
---
<new module 1> = self.variable('state', '<new module 1>', jnp.zeros, (<int>,))
if not self.is_initializing():
    <new module 1>.value = <new module 1>.value + <old array 2>.mean()
---
<new module 1> = self.has_variable('state', '<new module 2>')
<new module 2> = self.variable('state', '<new module 2>', jnp.ones, ())
if <new module 1>:
    <old array 3> = <old array 3> + <new module 2>.value""",
        "setup": """\
self.<new Scale 1> = self.param('<new Scale 1>', nn.initializers.normal(), (<int>,))
>>>x = x * self.<new Scale 1>.sum()
---
self.<new Counter 1> = self.variable('state', '<new Counter 1>', lambda: jnp.zeros(()))
>>>self.<new Counter 1>.value += 1
>>>x = x * self.<new Counter 1>.value
---
self.<new Scales 1> = [self.param(f'<new Scales 1>_{i}', nn.initializers.ones, (w,)) for i, w in enumerate(<list>)]
>>>for one in self.<new Scales 1>:
>>>    x = x * one.sum()""",
        "call": """\
<old array 1> = <old array 1> + jax.random.normal(self.make_rng('noise'), <old array 1>.shape)
---
self.sow('intermediates', 'h', <old array>)
---
self.sow('intermediates', 'h', <old array>)
---
self.sow('intermediates', 'total', <old array>.sum(), reduce_fn=lambda a, b: a + b, init_fn=lambda: 0.0)
---
if not self.is_initializing():
    self.sow('intermediates', '<new box>', <old array>.mean())
---
for i in range(2):
    <old array 1> = <old array 1> * jax.random.uniform(self.make_rng('noise'), ())""",
    }
)
