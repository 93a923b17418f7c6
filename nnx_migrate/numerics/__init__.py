"""Array functions that Linen's layers compute with, for both forms: ``linen`` (lazy) and ``nn`` (explicit).

Pure functions of arrays: no module, no variable, no key that is not an argument. Operation for
operation they are those of flax 0.12.8 (0.12.12 has the same), so that programs stay the same text.
"""
