"""Layers: what models are made of."""
