"""Set the text with which nbgrader replaces a solution; sources.py reads this file."""

c = get_config()  # noqa: F821 (nbgrader defines it)

STUB = 'raise NotImplementedError("This task is still yours: replace this line by your code.")'
c.ClearSolutions.code_stub = {"python": f"# YOUR CODE HERE\n{STUB}"}
c.ClearSolutions.text_stub = "*Your answer here.*"
