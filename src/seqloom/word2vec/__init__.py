"""Word vectors learned from the words around each word; numpy and numba, without torch."""
