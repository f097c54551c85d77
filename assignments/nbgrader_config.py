"""Text that nbgrader puts in place of a solution; sources.py reads it, and it holds no path."""

c = get_config()  # noqa: F821 (nbgrader hands it in)

STUB = 'raise NotImplementedError("This task is still yours: replace this line by your code.")'
c.ClearSolutions.code_stub = {"python": f"# YOUR CODE HERE\n{STUB}"}
c.ClearSolutions.text_stub = "*Your answer here.*"
