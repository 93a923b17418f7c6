"""Dataclass fields and the class statement itself, as the constructor's parameters."""
