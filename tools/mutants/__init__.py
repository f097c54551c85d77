"""Mutation testing: is there a test that notices when the mathematics of cgmm is made wrong?

A *mutant* is the package with one small mistake in it. A test that fails kills it; one that no test
kills is a missing test, or changes nothing that anybody could see. There are two sources:

- the classic mistakes of this field, written down by hand in ``*.toml`` beside this file;
- random ones, made by rules from the source: operators, constants, axes, functions, statements.

What survives and cannot be killed stands in ``survivors.toml``, with the reason.

    python -m tools.mutants                              the classic mistakes, all modules
    python -m tools.mutants weights em --generated 50    of two modules, and 50 random ones of these

Results are kept in _build/mutants, so that an interrupted run goes on where it stopped.
"""
