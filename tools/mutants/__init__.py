"""Mutation testing: is there a test that notices when the mathematics of cgmm is made wrong?

A *mutant* is the package with one small mistake in it, made by a rule from the source: operators,
constants, axes, functions, statements. A test that fails kills it; one that no test kills is a
missing test, or changes nothing that anybody could see.

    python -m tools.mutants                            a hundred, from all modules
    python -m tools.mutants mixture --number 50        of a room; or of a module, mixture.weights

Results are kept in _build/mutants, so that an interrupted run goes on where it stopped.

======================  ==========================================================================
``table``               a mutant
``generate``            the rules
``run``, ``forks``      which tests guard which file; a process for each mutant
``inject``              how a loaded function gets its mistake
======================  ==========================================================================
"""
