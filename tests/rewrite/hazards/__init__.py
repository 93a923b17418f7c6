"""Bugs that hand migrations really had, by the rule that avoids them (R1 to R13).

Every test names its rule: what it rewrites is code in which a migration by hand went wrong.
"""
