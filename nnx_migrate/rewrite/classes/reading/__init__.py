"""How a class is read: order of evaluation, steps of a body, names and what they hold."""
