"""ARPA files, the text format every n-gram tool reads and writes: a door to both ways."""

from seqloom.ngram.arpa_read import read_arpa
from seqloom.ngram.arpa_write import write_arpa

__all__ = ["read_arpa", "write_arpa"]
