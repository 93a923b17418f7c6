"""What is known of values, sizes and shapes without running anything.

``values`` are the abstract values, ``expression`` the sizes in them, ``shapes`` the arithmetic on both.
``sizes`` interprets code over them; a layer's shape rule, in its construct's file, is written in them.
"""
