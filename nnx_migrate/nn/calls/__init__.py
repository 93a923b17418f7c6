"""Linen's functional calls of NNX modules, and Linen modules behind the bridge."""
