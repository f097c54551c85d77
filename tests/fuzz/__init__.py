"""Random problems for every public estimator, and checks of the results of their fits."""
