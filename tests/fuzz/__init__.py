"""Random problems for every public estimator, and the contract that every answer must honour."""
