"""Fit every public estimator to random problems, and check the contract of its results."""
