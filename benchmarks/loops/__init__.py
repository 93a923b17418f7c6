"""The step time of a training program under Linen and after `rewrite`, with either loop."""
