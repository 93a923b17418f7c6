"""Sizes of an explicit class that is used as Linen's are: read off calls, or off variables.

An explicit constructor asks for what Linen infers. A size that is an input's is read there. One of a
submodule's input is measured: the module is built with a guess and called without values, and what
reaches the submodule is the next guess, until all guesses are what was measured; by induction over
the calls in their order these are the sizes Linen infers. What a call does not show (a method that
starts in the middle) the shapes of the given variables tell.
"""
