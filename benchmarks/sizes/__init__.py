"""Sizes: how many does real code need, and where does the rewriter get each from?"""
