"""Mutation testing: is there a test that notices when the mathematics of cgmm is made wrong?

A *mutant* is the package with one small mistake in it. A test that fails kills it; one that no test
kills is a missing test, or changes nothing that anybody could see. There are two sources:

- the classic mistakes of this field, written down by hand in ``*.toml`` beside this file, for each
  file of the mathematics; ``without.toml`` says why a file has none;
- random ones, made by rules from the source: operators, constants, axes, functions, statements.

What survives and cannot be killed stands in ``survivors.toml``, with the reason.

    python -m tools.mutants                            the classic mistakes, all modules
    python -m tools.mutants mixture.weights            of one module
    python -m tools.mutants mixture --generated 50     of a room, and 50 random ones of it

Results are kept in _build/mutants, so that an interrupted run goes on where it stopped.

======================  ==========================================================================
``table``               a mutant, and the tables of those written by hand
``generate``            the rules for random ones
``run``, ``forks``      which tests guard which file; a process for each mutant
``inject``              how a loaded function gets its mistake
======================  ==========================================================================
"""
