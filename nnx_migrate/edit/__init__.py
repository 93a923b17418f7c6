"""The editing engine: decisions about ``ast`` places become edits of LibCST nodes.

All analysis reads the standard library's ``ast``. A file that changes is parsed with LibCST once,
after all decisions; `Draft` finds the LibCST node of every place (`pairing`), applies edits, which
are functions from node to node, in one visit, and writes the text back. What no edit touches is the
same text, byte for byte.

LibCST is loaded by `draft` and what uses it, so only in a run that changes a file.
"""
