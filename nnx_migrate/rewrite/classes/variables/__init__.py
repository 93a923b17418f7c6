"""Variables that a class makes: how they are read, and where Linen's ``init`` moves them."""
