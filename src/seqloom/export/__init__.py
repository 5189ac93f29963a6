"""Models for other places: ONNX graphs, and weights of 8 bits."""

from seqloom.export.files import Products, export_int8, export_onnx

__all__ = ["Products", "export_int8", "export_onnx"]
