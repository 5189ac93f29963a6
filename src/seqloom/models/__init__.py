"""One file an architecture. A model takes tensors and returns a named output, nothing else."""
