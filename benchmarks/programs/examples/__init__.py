"""One module per program: a tiny config, what stands for its data, and how to start it.

Each has ``run(session)``; the session says how many steps, in which folder and from which state.
The program's own modules (`train`, `models`, ...) are imported inside, from the folder that runs.
"""
