"""Input that nobody writes on purpose: for tests that every reader answers it with its own error."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

FEW = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

DEEP = "[" * 20_000 + "]" * 20_000
BYTES = {
    "empty": b"",
    "NUL": b"\0\0\0",
    "not UTF-8": b'a = "\xe9"',
    "deep": DEEP.encode(),
    "many digits": b"9" * 5000,
    "another kind": b"# a text\n",
}


def json_values(*words: str) -> st.SearchStrategy[object]:
    """JSON values; ``words`` are texts that the reader knows."""
    texts = st.sampled_from(words) | st.text(max_size=6)
    simple = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
    return st.recursive(
        simple,
        lambda one: st.lists(one, max_size=3) | st.dictionaries(texts, one, max_size=4),
        max_leaves=10,
    )


def mutations(*contents: bytes) -> st.SearchStrategy[bytes]:
    """Files of which one piece is cut out, doubled, or replaced by other bytes."""

    @st.composite
    def mutated(draw: st.DrawFn) -> bytes:
        content = draw(st.sampled_from(contents))
        ends = st.integers(0, len(content))
        start, end = sorted((draw(ends), draw(ends)))
        piece = content[start:end]
        new = draw(st.sampled_from((b"", piece * 2, piece[::-1])) | st.binary(max_size=8))
        return content[:start] + new + content[end:]

    return mutated()


def refusal(read: Callable[[], object], error: type[Exception]) -> str:
    """Why a reader refuses its input, with its own error; nothing when it can use it."""
    try:
        read()
    except error as reason:
        return str(reason)
    return ""
