"""Random changes of known graphs, and whether both tiers still agree on what they mean.

In:   the graphs of the corpus and of the small cases, and a seed.
Out:  findings: graphs on which the tiers differ, or which end otherwise than by an answer or an
      ``OpError``, or which take too long or too much memory.
Not:  knows no right answers.  The executor, on graphs as they are, says what a graph means.

    cd tests && python -m fuzzing --count 10000 --seed 1      many; --help says more
    cd tests && python -m fuzzing --seed 1 --replay 4711      one of them again

- What is run: ``subjects`` are what is changed, and a ``mutant`` is one of them while it is
  changed; as a ``recipe`` says, by mutations of ``edges``, of ``facts``, and by ``hostile`` ones,
  which stand in a ``table``.
- What comes of it: ``running`` asks one tier for ``answers``, and ``judge`` compares them, for a
  ``verdict``.  Where they differ, ``latitude`` looks for a proof that both are right, in other
  ``orders`` and in graphs that are ``neighbours``.
- With limits: ``workers`` are processes, and each runs ``worker``.
"""
