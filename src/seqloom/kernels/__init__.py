"""Compiled recurrences: a cell's step as an expression, differentiated and printed as code."""
