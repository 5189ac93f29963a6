"""What a model did, as data first: how far gradients reach, how far a cell remembers."""
