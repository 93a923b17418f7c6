"""``parity certificate=FILE``: what a run showed, so that ``verify FILE`` can show it again."""
