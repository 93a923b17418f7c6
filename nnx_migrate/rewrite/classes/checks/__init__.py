"""What a class must not have, and what a person should look at."""
