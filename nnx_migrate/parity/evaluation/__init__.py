"""Running one side: trace, lower, compile, run; and the plain data that it yields."""
