"""The small store: a trie without pointers, its values in a byte each."""

from seqloom.ngram.trie_tables import (
    KIND,
    Packed,
    check,
    find_packed,
    packed_backoff,
    packed_extends,
    packed_prob,
    unpack,
)
from seqloom.ngram.trie_writer import TriePlan

__all__ = [
    "KIND",
    "Packed",
    "TriePlan",
    "check",
    "find_packed",
    "packed_backoff",
    "packed_extends",
    "packed_prob",
    "unpack",
]
