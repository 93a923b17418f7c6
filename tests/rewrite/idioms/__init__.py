"""Twenty-five ways in which large code uses Linen that a naive rewriting breaks.

Each has one test, ``test_NN_...`` by its number: rewritten and run on both sides, or refused with
the reason. Sources are stand-ins written for the test.
"""
