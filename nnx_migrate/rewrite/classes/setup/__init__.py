"""``setup`` as the rest of ``__init__``: what its attributes hold and what follows from them."""
