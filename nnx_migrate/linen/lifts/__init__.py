"""The lifted transforms: jax transforms of functions that read and write a module's variables.

``pack`` holds the one mechanism, a pure function of the variables and keys of some scopes;
``modules`` turns modules into scopes and back; ``targets`` lifts classes, methods and functions.
Every other file is one kind of transform: what it does with the pure function, and the public
function with Linen's signature. ``nnx_migrate.linen.transforms`` collects the public names.
"""
