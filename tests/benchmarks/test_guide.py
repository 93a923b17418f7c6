from benchmarks.corpus.guide import snippets

PAGE = """
.. testsetup:: Linen, NNX

  import jax

Text.

.. codediff::
  :title: Linen, NNX
  :sync:

  class Block(nn.Module):
    size: int

  model = Block(4)
  variables = model.init(0)

  ---

  class Block(nnx.Module): pass

.. codediff::
  :title: Linen, NNX
  :sync:

  class Other(nn.Module): pass
  model = Other()
  model.init(0)

  ---

  other = 1

.. codediff::
  :title: Linen, NNX
  :sync:

  params = variables['params']
  variables = {'params': params}

  ---

  pass

.. testcode:: Linen
  :hide:

  check(params)

.. testcode:: NNX
  :hide:

  check(nothing)
"""


def test_the_linen_half_of_every_pair_is_a_snippet() -> None:
    found = snippets(PAGE)
    assert [snippet.name for snippet in found] == ["01-Block", "02-Other", "03-use"]
    assert not any("nnx" in snippet.program for snippet in found)


def test_a_snippet_runs_after_what_it_needs_and_before_its_check() -> None:
    program = snippets(PAGE)[2].program
    assert program.startswith("import jax\n")
    assert (
        program.index("class Block") < program.index("params = ") < program.index("check(params)")
    )
    assert "Other" not in program
    assert "nothing" not in program
