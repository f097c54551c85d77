"""Course settings: nbgrader reads them, by itself or through sources.py. No path stands here."""

c = get_config()  # noqa: F821 (nbgrader hands it in)

c.CourseDirectory.course_id = "clustering-with-side-information"

# What a student finds in place of a solution.
STUB = 'raise NotImplementedError("This task is still yours: replace this line by your code.")'
c.ClearSolutions.code_stub = {"python": f"# YOUR CODE HERE\n{STUB}"}
c.ClearSolutions.text_stub = "*Your answer here.*"

# A cell that runs for longer is interrupted, loses its own points, and the next cell runs.
c.Execute.timeout = 30
c.Execute.interrupt_on_timeout = True
# A kernel may start slowly where many start at once; a student must not pay for it.
c.Execute.startup_timeout = 300
# A loop that prints without end may still be talking when its time is over.
c.Execute.raise_on_iopub_timeout = False

# Keep no history of what was graded, and let the kernel not warn about its sockets.
c.Execute.extra_arguments = ["--HistoryManager.hist_file=:memory:", "--log-level=ERROR"]

# nbgrader gives no points to a check that writes on stderr; a warning is no error, so drop it.
c.IgnorePattern.enabled = True
c.IgnorePattern.pattern = r"(?s)."
