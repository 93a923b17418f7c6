"""``nnx-migrate record``: run a program unchanged and store the sizes of the Linen calls it makes.

:mod:`command` starts the program with :mod:`startup` on its ``PYTHONPATH``; in every Python process
of it :mod:`hook` waits for ``flax.linen``, :mod:`intercept` wraps module construction and calls in
memory, :mod:`session` keeps what is new, and when the process ends :mod:`probe` traces every class
alone with changed sizes. Nothing here runs in a process that did not ask for it, and importing this
package loads nothing.
"""
