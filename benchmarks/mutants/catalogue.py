"""The mutants, one a line: name, file, original, fault, command at tiny and at full size, place, hazards.

Hazards that no mutant is are in ``hazards.py``, with the test that shows each.
"""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant as M

# Commands; the cheapest model that has the line.
L, Q, G = "model=llama2-7b", "model=qwen3-0.6b", "model=gemma3-12b"
D, D3, B = "model=deepseek", "model=deepseek3-671b", "model=deepseek3-671b-batchsplit"
LX, MUON, ZERO = f"{L} shard_mode=explicit", f"{L} optimizer=muon", f"{L} zero1=true"
APART, MTP = f"{L} scan_layers=false", f"{D} mtp_num_layers=1"
MOE_MUON = f"{D} optimizer=muon"
PLATEAU = f"{L} optimizer=plateau"
ACCUMULATED = f"{L} gradient_accumulation_steps=2"
SUM, ZERO_SUM = f"{ACCUMULATED} steps=2", f"{ACCUMULATED} zero1=true"
BARE = f"{L} rules=pure-fsdp mesh=fsdp:8"
PIPE = f"{L} mesh=stage:4,fsdp:2"
ROUND = f"{L} mesh=stage:2,fsdp:2 num_pipeline_microbatches=4"
# A ring of two stages is the same both ways.
RING = f"{PIPE} num_decoder_layers=8 num_pipeline_microbatches=4"
EARLY, LATE = f"{ROUND} pipeline_fsdp_ag_per_repeat=true", f"{PIPE} pipeline_fsdp_ag_once=true"
DELAY = f"{L} mesh=stage:2,fsdp:2 pipeline_delay_activation_forwarding=true"
DROP, DROP_APART, DROP_PIPE = (f"{one} dropout_rate=0.1" for one in (L, APART, PIPE))
FULL = "size=full"
LF, QF, GF, DF, D3F, BF = (f"{one} {FULL}" for one in (L, Q, G, D, D3, B))
LXF, MUONF, ZEROF, APARTF, MTPF = (f"{one} {FULL}" for one in (LX, MUON, ZERO, APART, MTP))
SUMF, ZERO_SUMF = f"{ACCUMULATED} {FULL}", f"{ZERO_SUM} {FULL}"
PLATEAUF = f"{PLATEAU} {FULL}"
BAREF = f"{BARE} {FULL}"
MOE_MUONF = f"{MOE_MUON} {FULL}"
PIPEF = f"{L} mesh=stage:4,fsdp:32 {FULL}"
ROUNDF = f"{PIPEF} num_pipeline_microbatches=8"
# Every stage once: the last one hands nothing to the first.
ONCEF = f"{PIPEF} num_layers_per_pipeline_stage=8"
EARLYF, LATEF = f"{PIPEF} pipeline_fsdp_ag_per_repeat=true", f"{PIPEF} pipeline_fsdp_ag_once=true"
DROPF, DROP_PIPEF = (f"{one} dropout_rate=0.1" for one in (LF, PIPEF))
DROP_APARTF = f"{DROP_APART} {FULL} num_decoder_layers=2"
DELAYF = f"{PIPEF} pipeline_delay_activation_forwarding=true"

# fmt: off
MODEL = (
    M("the scale of initial values", "gqa/linears.py", '1.0, "fan_in"', '2.0, "fan_in"', L, LF, "decoder/"),
    M("fan-out for fan-in", "gqa/linears.py", '1.0, "fan_in"', '1.0, "fan_out"', L, LF, "decoder/"),
    M("the embedding's initial scale", "gqa/embeddings.py", "initializers.normal(1.0)", "initializers.normal(0.9)", L, LF, "token_embedder"),
    M("epsilon inside the root", "gqa/normalizations.py", "mean_square + self.epsilon", "mean_square + 2 * self.epsilon", L, LF, "decoder/layers/pre_self_attention_layer_norm"),
    M("the norm's mean without float32", "gqa/normalizations.py", "x = x.astype(jnp.float32)", "x = x.astype(jnp.bfloat16).astype(jnp.float32)", L, f"{LF} dtype=float32", "decoder/layers/pre_self_attention_layer_norm"),
    M("a residual left out", "gqa/layers.py", "residual = inputs + constrain(attention, RESIDUAL)", "residual = constrain(attention, RESIDUAL)", L, LF, "decoder/layers"),
    M("norms in the wrong order", "gqa/layers.py", "normal = self.post_self_attention_layer_norm(residual)", "normal = self.pre_self_attention_layer_norm(residual)", L, LF, "decoder/layers"),
    M("a stopped gradient", "gqa/layers.py", "mlp = self.mlp(constrain(normal, RESIDUAL))\n        outputs", "mlp = self.mlp(jax.lax.stop_gradient(constrain(normal, RESIDUAL)))\n        outputs", L, LF, "decoder/layers/mlp | decoder/layers/post_self_attention_layer_norm"),
    M("key and value swapped", "gqa/attention.py", "key = self.key(inputs)", "key = self.value(inputs)", L, LF, "decoder/layers/self_attention"),
    M("the causal mask off by one", "gqa/attention.py", "seen = distance >= 0 if", "seen = distance >= -1 if", L, LF, "decoder/layers/self_attention"),
    M("the window off by one", "gqa/attention.py", "(distance < window)", "(distance <= window)", G, GF, "decoder/layers/layers_0/self_attention", "B25"),
    M("the global layer is local", "gqa/layers.py", "window = None if index == cfg.global_every - 1 else cfg.sliding_window_size\n            setattr", "window = cfg.sliding_window_size\n            setattr", G, GF, "decoder/layers/layers_2/self_attention | decoder/layers/layers_5/self_attention", "B25"),
    M("the local time scale for all layers", "gqa/attention.py", "timescale, factor = cfg.rope_max_timescale, cfg.rope_linear_scaling_factor", "timescale, factor = cfg.local_rope_max_timescale, cfg.rope_linear_scaling_factor", G, GF, "decoder/layers/layers_2/self_attention | decoder/layers/layers_5/self_attention"),
    M("a norm that is not called", "gqa/layers.py", "mlp = self.post_ffw_norm(constrain(mlp, RESIDUAL))", "mlp = constrain(mlp, RESIDUAL)", G, GF, "decoder/layers/layers_0/post_ffw_norm", "B29"),
    M("embeddings without Gemma's factor", "gqa/embeddings.py", 'if self.config.decoder_block == "gemma3":', 'if self.config.decoder_block == "gemma":', G, GF, "token_embedder", "B25"),
    M("norms of queries left out", "gqa/attention.py", "query = self.query_norm(query)", "query = query", Q, QF, "decoder/layers/self_attention/query_norm", "B25 B29"),
    M("logits from the rows of another axis", "gqa/embeddings.py", "return jnp.einsum(\"ble,ve->blv\", x, table,", "return jnp.einsum(\"ble,ve->blv\", x[..., ::-1], table,", Q, QF, "Transformer"),
    M("queries scaled twice", "gqa/attention.py", "* size**-0.5", "* size**-1.0", Q, QF, "decoder/layers/self_attention"),
    M("logits of attention in less than float32", "gqa/attention.py", "preferred_element_type=jnp.float32,\n", "preferred_element_type=jnp.bfloat16,\n", L, LF, "decoder/layers/self_attention", "B35"),
    M("a condition that no input reaches", "gqa/layers.py", "return constrain(outputs, RESIDUAL), None", "out = constrain(outputs, RESIDUAL)\n        return jax.numpy.where(out > 1e6, 0, out), None", L, LF, "decoder/layers | layers.py"),
    M("half of the features turned the wrong way", "gqa/rotary.py", "second * cosine + first * sine", "second * cosine - first * sine", L, LF, "decoder/layers/self_attention"),
    M("positions not scaled", "gqa/rotary.py", "astype(jnp.float32) / scaling_factor", "astype(jnp.float32)", G, GF, "decoder/layers/layers_2/self_attention | decoder/layers/layers_0/self_attention"),
    M("weights of another dtype", "gqa/linears.py", '("embed", "mlp"),\n                    out_axes=HIDDEN,\n                    dtype=cfg.dtype,\n                    weight_dtype=cfg.weight_dtype', '("embed", "mlp"),\n                    out_axes=HIDDEN,\n                    dtype=cfg.dtype,\n                    weight_dtype="bfloat16"', L, LF, "decoder/layers/mlp/wi_0", "B03"),
    M("a head that is never made", "gqa/model.py", "if not self.config.logits_via_embedding:\n", "if self.config.logits_via_embedding:\n", L, LF, "logits_dense", "B12"),
    M("a variable more", "gqa/layers.py", "self.out_features = cfg.emb_dim\n\n    def __call__(self, inputs", "self.out_features = cfg.emb_dim\n        self.buffer = nnx.Variable(jax.numpy.zeros(3))\n\n    def __call__(self, inputs", L, LF, "decoder/layers/buffer", "B10 B41 B42 B44"),
    M("another name of a stack", "gqa/model.py", "self.layers = nnm.scan(", "self.scanned_blocks = nnm.scan(", L, LF, "decoder/scanned_blocks", "B02 B27 B28"),
    M("another name of layers in a list", "gqa/model.py", 'setattr(self, f"layers_{index}", saving(cfg, in_features=x_features, rngs=rngs))', 'setattr(self, f"layer_{index}", saving(cfg, in_features=x_features, rngs=rngs)); setattr(self, f"layers_{index}", getattr(self, f"layer_{index}"))', APART, APARTF, "decoder/layer_0", "B02 B11 B28"),
    M("layers in another order", "gqa/model.py", 'x, _ = getattr(self, f"layers_{index}")(x, positions)', 'x, _ = getattr(self, f"layers_{count - 1 - index}")(x, positions)', APART, APARTF, "decoder/layers_0", "B51"),
    M("the Linen side's layers", "gqa/model.py", "from .normalizations import RMSNorm", "from ..linen.normalizations import RMSNorm", L, LF, "RMSNorm", "B48 B66"),
)

LIFTS = (
    M("remat left out", "gqa/model.py", "self.layers = nnm.scan(\n                nnm.remat(layer, prevent_cse=False, policy=saved)", "self.layers = nnm.scan(\n                layer", f"{L} remat_policy=full", f"{LF} remat_policy=full", "decoder", "B30"),
    M("remat with another policy", "gqa/remat.py", '"full": jax.checkpoint_policies.nothing_saveable', '"full": jax.checkpoint_policies.dots_saveable', f"{L} remat_policy=full", f"{LF} remat_policy=full", "decoder"),
    M("remat without its policy", "nnx_migrate/nn/lifts/remat.py", '"policy": policy}', '"policy": None}', f"{L} remat_policy=minimal", f"{LF} remat_policy=minimal", "decoder"),
    M("remat that forbids merging", "nnx_migrate/nn/lifts/remat.py", '"prevent_cse": prevent_cse,', '"prevent_cse": True,', L, LF, "decoder"),
    M("layers stacked along another axis", "gqa/model.py", 'elif cfg.scan_layers:\n            self.layers = nnm.scan(\n                nnm.remat(layer, prevent_cse=False, policy=saved),\n                variable_axes={"params": 1}', 'elif cfg.scan_layers:\n            self.layers = nnm.scan(\n                nnm.remat(layer, prevent_cse=False, policy=saved),\n                variable_axes={"params": 0}', L, LF, "decoder/layers", "B15 B16"),
    M("a stack of another name", "gqa/model.py", 'metadata_params={nnx.PARTITION_NAME: "layers"}', 'metadata_params={nnx.PARTITION_NAME: "dense_layers"}', L, LF, "decoder/layers", "B16"),
    M("a stack whose layers are alike", "gqa/model.py", 'split_rngs={"params": True, "dropout": True},\n                in_axes=nnm.broadcast,\n                length=count', 'split_rngs={"params": False, "dropout": True},\n                in_axes=nnm.broadcast,\n                length=count', L, LF, "decoder"),
    M("the scan in reverse", "nnx_migrate/nn/loops/loop.py", "length=length, **self.options", 'length=length, **{**self.options, "reverse": True}', L, LF, "Transformer/decoder (model.py | in Decoder.__call__"),
    M("the scan unrolled", "nnx_migrate/nn/loops/loop.py", "length=length, **self.options", 'length=length, **{**self.options, "unroll": 2}', L, LF, "decoder"),
    M("the scan returns what it only reads", "nnx_migrate/nn/variables/parts.py", "return {i: one for i, one in found.items() if not _is_same(one, given[i])}", "return found", L, LF, "step: ", "B21"),
    M("names of a stack not recorded", "nnx_migrate/nn/loops/stack_axis.py", "return {**edited, **_record((*_recorded(metadata), (index, name)))}", "return edited", L, LF, "param_scan_axis", "B15 B19"),
    M("a stack's name at the front", "nnx_migrate/nn/loops/stack_axis.py", "edited[key] = _alike(metadata[key], (*names[:index], name, *names[index:]))", "edited[key] = _alike(metadata[key], (name, *names))", L, LF, "decoder/layers", "B15 B20"),
    M("values of a stack at the front", "nnx_migrate/nn/loops/stacking.py", "variable.set_value(jax.tree.map(lambda leaf: from_front(leaf, index), value))", "variable.set_value(value)", L, LF, "decoder/layers", "B15 B16"),
    M("the loop over another axis", "nnx_migrate/nn/loops/loop.py", "return jax.tree.map(lambda x: to_front(jnp.asarray(x), axis % jnp.ndim(x)), xs)", "return jax.tree.map(lambda x: jnp.asarray(x).swapaxes(0, axis % jnp.ndim(x)), xs)", L, LF, "decoder/layers", "", "layers stand at axis 1, where to swap with the first axis is to move to the front; other axes are in tests/nn/test_scan.py"),
    M("initial values by another path", "nnx_migrate/nn/loops/stacking.py", "return jax.random.split(base, length)[index]", "return jax.random.split(base, length)[0 * index]", L, "", "decoder/layers"),
    M("lanes whose layers are alike", "gqa/pipeline.py", 'if cfg.schedule.repeats == 1:\n            if in_features is not None:\n                self.layers = stages(cfg, in_features=in_features, rngs=rngs)', 'if cfg.schedule.repeats == 1:\n            if in_features is not None:\n                self.layers = nnm.vmap(layer, variable_axes={"params": 0}, split_rngs={"params": False}, in_axes=None, axis_size=cfg.schedule.stages, metadata_params={nnx.PARTITION_NAME: "layers"})(cfg, in_features=in_features, rngs=rngs)', PIPE, "", "decoder/pipeline_module/layers"),
    M("lanes along another axis", "gqa/pipeline.py", 'elif in_features is not None:\n            self.layers = nnm.vmap(\n                stages,\n                variable_axes={"params": 0}', 'elif in_features is not None:\n            self.layers = nnm.vmap(\n                stages,\n                variable_axes={"params": 1}', ROUND, ROUNDF, "decoder/pipeline_module/layers"),
)

# Faults of keys alone: parity gives every draw one key, and only the count of the keys drawn sees them.
# Which draws have a key of their own: at full size nothing is drawn.
KEYS = (
    M("layers that drop alike", "gqa/model.py", 'split_rngs={"params": True, "dropout": True},\n                in_axes=nnm.broadcast,\n                length=count', 'split_rngs={"params": True, "dropout": False},\n                in_axes=nnm.broadcast,\n                length=count', DROP, "", "keys", "B23"),
    M("lazy layers that drop alike", "fixtures/gqa/lazy/model.py", 'split_rngs={"params": True, "dropout": True},\n                in_axes=nn.broadcast,\n                length=count', 'split_rngs={"params": True, "dropout": False},\n                in_axes=nn.broadcast,\n                length=count', f"{DROP} form=lazy", "", "keys", "B23"),
    M("a stack that drops alike in every call", "nnx_migrate/nn/loops/groups.py", "count.set_value(count[...] + 1)", "count.set_value(count[...])", DROP, "", "keys", "B23"),
    M("iterations of a pipeline that drop alike", "gqa/stages.py", "jax.random.fold_in(key, iteration)", "jax.random.fold_in(key, 0 * iteration)", DROP_PIPE, "", "keys", "B23 B39"),
    M("stages that drop alike", "gqa/stages.py", "return jax.random.split(jax.random.fold_in(key, iteration), config.schedule.stages)", "return jax.random.split(jax.random.fold_in(key, iteration), config.schedule.stages)[jax.numpy.zeros(config.schedule.stages, int)]", DROP_PIPE, "", "keys", "B23"),
    M("a pipeline's key drawn at construction", "gqa/pipeline.py", 'self.dropout_rng = nnm.stream(rngs, "dropout")', 'self.dropout_rng = functools.partial(jax.numpy.copy, nnm.stream(rngs, "dropout")())', DROP_PIPE, DROP_PIPEF, "rng | DecoderLayer", "B06 B23"),
)

DROPOUT = (
    M("dropout left out", "gqa/layers.py", "outputs = residual + constrain(mlp, RESIDUAL)\n        if cfg.dropout_rate > 0:", "outputs = residual + constrain(mlp, RESIDUAL)\n        if False:", DROP, DROPF, "decoder/layers", "B13"),
    M("Linen's dropout in a call", "gqa/linears.py", "x = self.Dropout_0(x)", "from flax.linen import Dropout; x = Dropout(cfg.dropout_rate, broadcast_dims=(-2,), deterministic=False)(x)", DROP, DROPF, "Dropout | CallCompactUnboundModuleError", "B13"),
    M("dropout turned off", "gqa/linears.py", "deterministic=False, rngs=rngs", "deterministic=True, rngs=rngs", DROP, DROPF, "decoder/layers/mlp", "B13"),
    M("dropout at another rate", "gqa/linears.py", "cfg.dropout_rate, broadcast_dims", "0.5 * cfg.dropout_rate, broadcast_dims", DROP, DROPF, "decoder/layers/mlp"),
    M("tokens that drop other features", "gqa/linears.py", "broadcast_dims=(-2,)", "broadcast_dims=()", DROP, DROPF, "decoder/layers/mlp"),
    M("dropout before the norm", "gqa/layers.py", "normal = self.post_self_attention_layer_norm(residual)", "normal = self.post_self_attention_layer_norm(self.Dropout_0(residual) if cfg.dropout_rate > 0 else residual)", DROP, DROPF, "decoder/layers"),
    M("a draw without its stream", "gqa/linears.py", "x = self.Dropout_0(x)", "x = self.Dropout_0(x, rngs=self.Dropout_0.rngs.key[...])", DROP_APART, DROP_APARTF, "decoder/layers_0/mlp", "B06 B23"),
    M("a key drawn at construction", "gqa/linears.py", "self.Dropout_0 = nnx.Dropout(\n                cfg.dropout_rate, broadcast_dims=(-2,), deterministic=False, rngs=rngs\n            )", "self.Dropout_0 = __import__(\"functools\").partial(nnx.Dropout(cfg.dropout_rate, broadcast_dims=(-2,), deterministic=False), rngs=rngs.dropout())", DROP_APART, DROP_APARTF, "decoder/layers_0/mlp", "B06 B23"),
)

SHARDING = (
    M("a parameter without names", "gqa/embeddings.py", 'nnx.with_metadata(nnx.initializers.normal(1.0), logical_axes=("vocab", "embed_vocab"))', "nnx.initializers.normal(1.0)", L, LF, "token_embedder/embedding", "B01"),
    M("names in another order", "gqa/embeddings.py", '("vocab", "embed_vocab"))', '("embed_vocab", "vocab"))', L, LF, "token_embedder/embedding"),
    M("a name that no rule has", "gqa/attention.py", '("embed", "q_heads", "kv"),\n            HEADS', '("embedding", "q_heads", "kv"),\n            HEADS', L, LF, "decoder/layers/self_attention/query", "B52"),
    M("a constraint lost", "gqa/attention.py", "inputs = constrain(inputs, INPUTS)", "inputs = inputs", L, LF, "self_attention"),
    M("a constraint by a name that no rule has", "gqa/attention.py", 'INPUTS = ("activation_batch_attn", "activation_length_attn"', 'INPUTS = ("activation_batch_attention", "activation_length_attn"', L, LF, "self_attention", "B17"),
    M("a constraint more", "gqa/layers.py", "residual = inputs + constrain(attention, RESIDUAL)", "residual = constrain(inputs + constrain(attention, RESIDUAL), RESIDUAL)", L, LF, "decoder/layers"),
    M("a constraint on another value", "gqa/layers.py", "residual = inputs + constrain(attention, RESIDUAL)", "residual = constrain(inputs + attention, RESIDUAL)", L, LF, "decoder/layers"),
    M("a constraint of the loss lost", "gqa/objective.py", "per_token = constrain(per_token, TOKENS)", "per_token = per_token", L, LF, "objective.py"),
    M("a reshard lost", "gqa/placement.py", "return jax.sharding.reshard(x, nn.logical_to_mesh_axes(names))", "return x", LX, LXF, "placement.py", "B54"),
    M("products sharded otherwise", "gqa/attention.py", "weights, value, out_sharding=out_sharding(MIXED)", "weights, value, out_sharding=out_sharding((None, *MIXED[1:]))", LX, LXF, "self_attention"),
    M("the last rule of a name wins", "nnx_migrate/sharding/resolve.py", "for index, name, axes in _rules_of(waiting, rules):", "for index, name, axes in reversed(_rules_of(waiting, rules)):", L, LF, "params/", "B53"),
    M("conflicts between rules not seen", "nnx_migrate/sharding/resolve.py", "if owners.keys().isdisjoint(wanted):", "if True:", L, LF, "params/ | duplicate entries", "B53"),
    M("names without a rule stay", "nnx_migrate/sharding/resolve.py", "entries: list[Entry] = [None if isinstance(name, str) else name for name in names]", "entries: list[Entry] = list(names)", BARE, BAREF, "params/", "B52"),
    M("mesh axes of size 1 stay", "nnx_migrate/sharding/resolve.py", "kept.append(tuple(axis for axis in entry if sizes.get(axis, 1) != 1))", "kept.append(tuple(entry))", LX, LXF, "", "B54", "an axis of size 1 shards nothing, and jax drops it from types; what is dropped is in tests/sharding/test_three_ways.py"),
    M("one key of the metadata is read", "nnx_migrate/sharding/annotations.py", 'NAME_KEYS = ("out_sharding", "sharding_names", "sharding", "logical_axes")', 'NAME_KEYS = ("out_sharding", "sharding_names", "sharding")', L, LF, "params/", "B04"),
    M("constraints do nothing over Auto axes", "nnx_migrate/linen/spmd.py", "return lax.with_sharding_constraint(x, axis_resources)", "return x", L, LF, "Transformer"),
    M("what does not fit is dropped", "nnx_migrate/sharding/leaves.py", "return resolve_spec(names, rules, self.mesh, strict=self.strict)", "return PartitionSpec(*resolve_spec(names, rules, self.mesh, strict=self.strict)[:1])", L, LF, "params/", "B57"),
    M("the stack's name found at another place", "nnx_migrate/sharding/scan_axis.py", "return (*names[: axis.index], axis.name, *names[axis.index :])", "return (axis.name, *names)", L, LF, "decoder/layers", "B15", "names are stored with the stack's own: nothing is inserted into them in these models"),
    M("ZeRO-1 takes another dimension", "nnx_migrate/sharding/edit.py", "for dim in range(len(shape)):\n        entry: Entry = entries[dim]", "for dim in reversed(range(len(shape))):\n        entry: Entry = entries[dim]", ZERO, ZEROF, "params/", "B55", "the harness stores both sides by this one function: what it does is compared with MaxText's in tests/sharding"),
    M("a gather over the wrong axes", "nnx_migrate/sharding/edit.py", 'FSDP_AXES = ("fsdp", "fsdp_transpose")', 'FSDP_AXES = ("fsdp_transpose",)', LATE, LATEF, "", "B36", "both sides of the pipeline take this function: see tests/sharding/test_pipeline.py"),
)

LOSS = (
    M("the loss's scale", "gqa/objective.py", "jnp.sum(per_token * counts)", "2 * jnp.sum(per_token * counts)", L, LF, "loss"),
    M("the loss over all tokens", "gqa/objective.py", "(positions < tokens.shape[1] - 1)", "(positions < tokens.shape[1])", L, LF, "loss"),
    M("targets off by one", "gqa/objective.py", "jnp.roll(tokens, -1, axis=1)", "jnp.roll(tokens, 1, axis=1)", L, LF, "loss"),
    M("no z-loss", "gqa/objective.py", "+ config.z_loss_weight * jnp.square(normalizer)", "", L, LF, "loss", "B25"),
    M("the mean over the batch only", "gqa/objective.py", "/ jnp.sum(counts)", "/ counts.size", L, LF, "loss"),
)

EXPERTS = (
    M("no load-balance loss", "ds/model.py", "balance = jnp.sum(balances)", "balance = jnp.sum(balances) * 0", D, DF, "loss", "B22 B42 B45"),
    M("experts not constrained", "ds/moe.py", "mixed = constrain(mixed, MIXED)", "mixed = mixed", D, DF, "MoeBlock_0"),
    M("the router's axis names", "ds/moe.py", '(fan_in_init(1), logical_axes=("embed_moe", None))', '(fan_in_init(1), logical_axes=("embed", None))', D, DF, "moe_layers/DeepSeekMoeBlock_0/MoeBlock_0/gate"),
    M("the bias counts as a weight", "ds/routing.py", "weights = jnp.take_along_axis(found, indices, axis=-1)", "weights = jnp.take_along_axis(preferred, indices, axis=-1)", D3, D3F, "MoeBlock_0"),
    M("groups by their best expert", "ds/routing.py", "jax.lax.top_k(grouped, min(2, grouped.shape[-1]))", "jax.lax.top_k(grouped, 1)", D3, D3F, "MoeBlock_0"),
    M("weights not made to sum to one", "ds/routing.py", "weights = weights / jnp.sum(weights, axis=-1, keepdims=True)", "weights = weights", D3, D3F, "MoeBlock_0"),
    M("weights not scaled", "ds/routing.py", "return weights * config.routed_scaling_factor, indices", "return weights, indices", D3, D3F, "MoeBlock_0"),
    M("the router's bias off", "ds/moe.py", "if cfg.routed_bias:\n            bias = self.bias[...]", "if cfg.routed_bias:\n            bias = 0 * self.bias[...]", D3, D3F, "MoeBlock_0", "B45"),
    M("load by probability alone", "ds/routing.py", "return config.num_experts * jnp.sum(load * probability)", "return config.num_experts * jnp.sum(probability * probability)", D, DF, "loss"),
    M("shared experts of one size", "ds/moe.py", "cfg.shared_experts * cfg.moe_mlp_dim, in_features", "cfg.moe_mlp_dim, in_features", D, DF, "shared_experts"),
    M("rows of experts elsewhere kept", "ds/experts.py", "held = (chosen >= 0) & (chosen < wi_0.shape[0])", "held = chosen < wi_0.shape[0]", f"{D} sparse_matmul=true", f"{DF} sparse_matmul=true", "MoeBlock_0"),
    M("the wrong rows summed", "ds/experts.py", "summed = jnp.zeros_like(tokens).at[order // config.num_experts_per_tok]", "summed = jnp.zeros_like(tokens).at[order % tokens.shape[0]]", f"{D} sparse_matmul=true", f"{DF} sparse_matmul=true", "MoeBlock_0"),
    M("keys not turned", "ds/attention.py", "key_rope = apply_rotary(key_rope, positions, cfg)", "key_rope = key_rope", D, DF, "self_attention"),
    M("halves for neighbours", "ds/rotary.py", "if config.rope_interleave:", "if not config.rope_interleave:", D, DF, "self_attention"),
    M("another sharpness of attention", "ds/rotary.py", "math.log(config.rope_factor) + 1) ** 2", "math.log(config.rope_factor) + 1) ** 1", D, DF, "self_attention"),
    M("the mask of the latent attention", "ds/attention.py", "jnp.tril(jnp.ones((length, length), dtype=bool))", "jnp.tril(jnp.ones((length, length), dtype=bool), -1)", D, DF, "self_attention"),
)

AHEAD = (
    M("the token ahead off by one", "ds/model.py", "jnp.roll(tokens, -number, axis=1)", "jnp.roll(tokens, -number - 1, axis=1)", MTP, MTPF, "Transformer (model.py"),
    M("the loss ahead not weighted", "ds/objective.py", "total += config.mtp_loss_scaling_factor * ahead / len(further)", "total += ahead / len(further)", MTP, MTPF, "loss", "B42"),
    M("norms ahead swapped", "ds/mtp.py", "known = self.hidden_state_norm(hidden)", "known = self.embedding_norm(hidden)", MTP, MTPF, "mtp_layer_1"),
    M("a constraint ahead lost", "ds/mtp.py", "constrain(jnp.concatenate([known, coming], axis=-1), RESIDUAL)", "jnp.concatenate([known, coming], axis=-1)", MTP, MTPF, "mtp_layer_1"),
    M("no balance of the layer ahead", "ds/model.py", "logits.append(self.decoder.logits(x))\n            balance += layer_balance", "logits.append(self.decoder.logits(x))", MTP, MTPF, "loss", "B22 B42"),
)

SPLIT = (
    M("micro-batches joined in another order", "ds/microbatches.py", "factor, _, length, features = parts.shape", "parts = parts[::-1]; factor, _, length, features = parts.shape", B, BF, "moe_layers"),
    M("positions of another micro-batch", "ds/layers.py", "attention(normal[part], places[part])", "attention(normal[part], places[0])", B, BF, "moe_layers"),
    M("no barrier", "ds/layers.py", "residuals = jax.lax.optimization_barrier(residuals)", "residuals = residuals", B, BF, "moe_layers"),
    M("the last balance for the mean", "ds/layers.py", "jnp.mean(jnp.stack(balances))", "balances[-1]", B, BF, "loss", "B22"),
    M("outputs sharded otherwise", "ds/microbatches.py", "return jax.sharding.reshard(x, jax.typeof(reference).sharding) if is_explicit() else x", "return x", B, BF, "moe_layers", "B54"),
)

PIPELINE = (
    M("the wrong output first", "gqa/buffers.py", "io = jnp.roll(buffers.io, -first, axis=1)", "io = buffers.io", ROUND, ROUNDF, "pipeline"),
    M("the first stage takes what comes round", "gqa/buffers.py", "first = jnp.where(iteration < schedule.microbatches, fresh, round_again)", "first = jnp.where(iteration <= schedule.microbatches, fresh, round_again)", ROUND, ROUNDF, "pipeline"),
    M("stages turned the other way", "gqa/rotation.py", "return over_stages(lambda part: _moved(part, 1, wraps=True)", "return over_stages(lambda part: _moved(part, -1, wraps=True)", RING, ROUNDF, "pipeline"),
    M("stages shifted with wrapping", "gqa/rotation.py", "return over_stages(lambda part: _moved(part, 1, wraps=False)", "return over_stages(lambda part: _moved(part, 1, wraps=True)", PIPE, ONCEF, "pipeline"),
    M("waiting one iteration early", "gqa/buffers.py", "place = (iteration - schedule.filling - 1)", "place = (iteration - schedule.filling)", ROUND, ROUNDF, "pipeline"),
    M("nothing handed on late", "gqa/buffers.py", "handed = outputs if buffers.delayed is None else buffers.delayed", "handed = outputs", DELAY, DELAYF, "pipeline"),
    M("weights of the first repeat", "gqa/stages.py", "return jax.lax.dynamic_index_in_dim(weight, repeat, 0, keepdims=False)", "return jax.lax.dynamic_index_in_dim(weight, 0 * repeat, 0, keepdims=False)", ROUND, ROUNDF, "pipeline"),
    M("no early gather", "gqa/pipeline.py", "weights = gather(config, weights, stage_axis=1)", "weights = weights", LATE, LATEF, "pipeline", "B36"),
    M("gradients of a repeat twice", "gqa/repeats.py", "return scatter(config, weights, gradients, repeat), None, first, None, None", "return scatter(config, weights, jax.tree.map(lambda x: 2 * x, gradients), repeat), None, first, None, None", EARLY, EARLYF, "pipeline_module", "B37"),
    M("the window of the next repeat", "gqa/repeats.py", "slots = schedule.repeat(iteration) - (repeat - 1)", "slots = schedule.repeat(iteration) - repeat", EARLY, EARLYF, "pipeline"),
    M("an iteration without its checkpoint", "gqa/pipeline.py", "@functools.partial(jax.checkpoint, policy=pipeline_policy(config), prevent_cse=False)\n    def", "def", PIPE, PIPEF, "pipeline", "B30 B39"),
    M("stages not named to the map", "gqa/stages.py", 'spmd_axis_name=None if is_explicit() else "stage"', "spmd_axis_name=None", PIPE, PIPEF, "pipeline"),
)

STEP = "nnx_migrate/parity/training/nnx.py"
OPTIMIZER = (
    M("Muon over other axes", "gqa/muon.py", "return MuonDimensionNumbers((0, -2), (-1,))", "return MuonDimensionNumbers((0,), (-1,))", MUON, MUONF, "step"),
    M("Muon for the head", "gqa/muon.py", 'if name in NORMS_AND_TABLES or "logits_dense" in modules:', "if name in NORMS_AND_TABLES:", MUON, MUONF, "logits_dense"),
    M("heads as reduction", "gqa/muon.py", "return MuonDimensionNumbers((0,), (-2, -1))", "return MuonDimensionNumbers((0, -2), (-1,))", MUON, MUONF, "step"),
    M("Muon over all experts", "ds/muon.py", "return MuonDimensionNumbers((-2,), (-1,))", "return MuonDimensionNumbers((-2, 0), (-1,))", MOE_MUON, MOE_MUONF, "step"),
    M("an optimizer that is not told the loss", STEP, "gradients, value=value, grad=gradients)", "gradients, grad=gradients)", f"{PLATEAU} steps=3", PLATEAUF, "'value'", "B46"),
    M("an optimizer that is told another loss", STEP, "gradients, value=value, grad=gradients)", "gradients, value=0 * value, grad=gradients)", f"{PLATEAU} steps=3", PLATEAUF, "step", "B46"),
    M("a stack's axis for a matrix", "ds/muon.py", 'STACKS = ("dense_layers", "moe_layers")', 'STACKS = ("dense_layers",)', MOE_MUON, MOE_MUONF, "moe_layers", "", "vectors of a stack are named scale or bias, and left to AdamW by name"),
)

ACCUMULATION = (
    M("gradients not divided", STEP, "jax.tree.map(lambda one: one / number, total)", "total", SUM, SUMF, "step"),
    M("the last micro-batch's gradients", STEP, "jax.tree.map(jnp.add, total, gradients)", "gradients", SUM, SUMF, "step"),
    M("gradients added with fewer bits", STEP, "jax.tree.map(jnp.add, total, gradients)", "jax.tree.map(lambda one, new: one + new.astype(jnp.bfloat16), total, gradients)", SUM, SUMF, "step", "B35"),
    M("a loss not divided", STEP, "jnp.sum(values) / number", "jnp.sum(values)", SUM, SUMF, "step"),
    M("the last micro-batch's loss", STEP, "jnp.sum(values) / number", "values[-1]", SUM, SUMF, "step"),
    M("micro-batches from last to first", STEP, "jax.lax.scan(body, (state, nothing), parts)", "jax.lax.scan(body, (state, nothing), parts, reverse=True)", SUM, SUMF, "step"),
    M("the whole batch for every micro-batch", STEP, "parts = microbatches(arrays, count)", "parts = [jnp.broadcast_to(one, (count, *one.shape)) for one in arrays]", SUM, SUMF, "Transformer/token_embedder"),
    M("every micro-batch begins anew", STEP, "return (after, jax.tree.map(", "return (state, jax.tree.map(", SUM, SUMF, "step", "", "a call of these models changes no variable; tests/parity/test_accumulation.py has statistics that it moves"),
    M("parameters of calls not gathered", STEP, "params = for_calls(case, params, wanted)", "params = params", ZERO_SUM, ZERO_SUMF, "constraint"),
    M("parameters stay as they were gathered", STEP, "_with_values(after, params) if gathered else after", "after", ZERO, ZEROF, "step"),
)
# fmt: on

MUTANTS = (
    *MODEL,
    *LIFTS,
    *KEYS,
    *DROPOUT,
    *SHARDING,
    *LOSS,
    *EXPERTS,
    *AHEAD,
    *SPLIT,
    *PIPELINE,
    *OPTIMIZER,
    *ACCUMULATION,
)
