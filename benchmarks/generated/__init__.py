"""Random Linen programs: rewritten in both forms, run, and compared with what they printed before."""
