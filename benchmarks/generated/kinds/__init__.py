"""What classes of random programs are made of."""
