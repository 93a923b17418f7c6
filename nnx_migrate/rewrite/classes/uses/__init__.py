"""What methods do with the module: Linen's names and methods, bases, classes that build themselves."""
