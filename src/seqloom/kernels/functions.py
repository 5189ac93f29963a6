"""The functions a step may use, on expressions while it is traced and on tensors when it runs."""

from __future__ import annotations

from typing import Any

from seqloom.kernels.expressions import Expression, apply, check_count
from seqloom.kernels.folding import of_numbers


def _function(name: str) -> Any:
    def call(*values: Any) -> Any:
        if any(isinstance(value, Expression) for value in values):
            return apply(name, *values)
        check_count(name, values)
        if all(isinstance(value, int | float) for value in values):
            return of_numbers(name, values)
        import torch
        from torch.nn import functional

        for value in values:
            if not isinstance(value, torch.Tensor | int | float):
                raise TypeError(f"{name} takes values of the step and numbers, got {value!r}")
        tensors = [v if isinstance(v, torch.Tensor) else _like(v, values) for v in values]
        return getattr(torch if hasattr(torch, name) else functional, name)(*tensors)

    call.__name__ = name
    call.__doc__ = f"`torch.{name}`, element by element."
    return call


def _like(value: Any, values: Any) -> Any:
    return next(v for v in values if hasattr(v, "new_tensor")).new_tensor(value)


exp, log, sqrt = _function("exp"), _function("log"), _function("sqrt")
tanh, sigmoid, softplus, relu = map(_function, ("tanh", "sigmoid", "softplus", "relu"))
absolute = _function("abs")
maximum, minimum = _function("maximum"), _function("minimum")
