"""Annotations that the running program reads, where a class of the project stands in them.

`at_place` answers for one annotation. What reads annotations is found in `readers`, `fields` and `packages`; whose
they are, `referents` follows back through parameters, decorators and methods, and `uses` through mentions.
"""
