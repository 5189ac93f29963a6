"""Counted language models: count, smooth, store, query, ARPA."""
