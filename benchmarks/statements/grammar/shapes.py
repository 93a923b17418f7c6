"""Shapes that change between layers; each statement gives rows of features again."""

from benchmarks.statements.grammar.topics import Topic

SHAPES = Topic(
    expressions={
        "layer": """\
nn.DenseGeneral(<int>)
nn.GroupNorm(num_groups=1)""",
        "spread": """\
nn.Conv(<int>, (3,))
nn.Conv(features=<int>, kernel_size=(2,), padding='SAME')
nn.Conv(<int>, (1,), use_bias=False)
nn.ConvTranspose(<int>, (2,))
nn.Dense(<int>)
Block(<int>)
nn.LayerNorm()
nn.MultiHeadDotProductAttention(num_heads=1, qkv_features=<int>)
nn.SelfAttention(num_heads=1)""",
        "rows": """\
<old array>[:, :, None]
<old array>[..., None]
jnp.expand_dims(<old array>, 1)
jnp.stack([<old array 1>, <old array 1>], axis=1)
jnp.stack([<old array 1>, nn.relu(<old array 1>)], axis=-1)
<old array 1>.reshape(<old array 1>.shape[0], -1, 1)
<old array 1>.reshape((-1, 1, <old array 1>.shape[-1]))
jnp.tile(<old array>[:, None, :], (1, 3, 1))
jnp.swapaxes(<old array>[:, :, None], 1, 2)
jnp.transpose(jnp.stack([<old array 1>, <old array 1>], 1), (0, 2, 1))
jnp.einsum('bi,bj->bij', <old array>, <old array>)""",
        "flat": """\
flat(<rows>)
<rows>.mean(axis=1)
<rows>.max(axis=-1)
jnp.sum(<rows>, 1)
<rows>[:, 0]
<rows>[:, -1, :]
nn.avg_pool(<rows>, (1,)).mean(1)
nn.max_pool(<rows>, window_shape=(2,), strides=(1,), padding='SAME').sum(1)
jnp.concatenate([<rows>, <rows>], axis=1)[:, 0]""",
    },
    statements={
        "compact": """\
<new box 1> = <spread>(<rows>)
<new array 2> = flat(<new box 1>)
---
<new box 1> = <rows>
<new box 1> = <spread>(<new box 1>)
<new box 1> = <spread>(<new box 1>)
<new array 2> = <new box 1>.mean(axis=1)
---
<new box 1> = nn.relu(<spread>(<rows>))
<new box 1> = nn.avg_pool(<new box 1>, (1,), strides=(1,))
<new array 2> = <new box 1>.reshape(<new box 1>.shape[0], -1)
---
<new box 1>, <new box 2> = jnp.split(nn.Dense(2 * <int>)(<old array 3>), 2, axis=-1)
<old array 3> = <new box 1> * nn.sigmoid(<new box 2>)
---
<new array 1> = jnp.concatenate([part * 2 for part in jnp.split(nn.Dense(6)(<old array>), 3, -1)], 0)[:2]
---
<new array 1> = jnp.einsum('bi,bj->bij', <old array 2>, nn.Dense(<int>)(<old array 2>)).sum(1)
---
<new box 1> = nn.Dense(<int 2> * <int 3>)(<old array 4>)
<new array 5> = nn.Dense(<int>)(<new box 1>.reshape(-1, <int 2>, <int 3>).transpose(0, 2, 1)).mean(1)
---
<new box 1> = jnp.stack([<old array 2>, <old array 2>], 1)[..., None]
<new box 1> = nn.Conv(<int>, (2, 2))(<new box 1>)
<new box 1> = nn.max_pool(<new box 1>, (2, 2), strides=(2, 2), padding='SAME')
<new array 3> = <new box 1>.mean((1, 2))
---
<new array 1> = nn.DenseGeneral(<int>, axis=(-2, -1))(<rows>)
---
<new array 1> = nn.DenseGeneral((2, <int>))(<old array>)[:, 0]
---
<new box 1> = nn.Embed(7, <int>)(jnp.arange(4))
<new array 2> = <new box 1>.mean(0) + <old array>[:, :1]
---
<new array 1> = <layer>(<flat>)
---
<new array 1> = <layer>(<flat>)""",
        "setup": """\
self.<new Part 1> = <spread>
>>>x = flat(self.<new Part 1>(x[..., None]))
---
self.<new Part 1> = <spread>
self.<new Part 2> = <spread>
>>>x = self.<new Part 2>(self.<new Part 1>(jnp.stack([x, x], 1))).mean(1)
---
self.<new Part 1> = nn.Dense(2 * <int>)
>>>a, b = jnp.split(self.<new Part 1>(x), 2, axis=-1)
>>>x = a * nn.sigmoid(b)
---
self.<new Part 1> = nn.Embed(7, <int>)
>>>x = x[:, :1] + self.<new Part 1>(jnp.array([1, 2]))""",
        "call": """\
<new array> = <flat>
---
<new array> = <flat>
---
<old array 1> = <old array 1>.reshape(<old array 1>.shape[0], -1)
---
<new box 1> = <old array 2>.T
<old array 2> = jnp.concatenate([<new box 1>, <new box 1>]).T""",
    },
)
