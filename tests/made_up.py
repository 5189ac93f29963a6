"""A cell with nothing of the LSTM's shape: three states, a second product, a vector."""

from __future__ import annotations

import torch

from seqloom.kernels.functions import maximum, softplus
from seqloom.nn.cells import Cell, State


class MadeUp(Cell):
    gates = ("a", "b", "c")
    states = ("h", "p", "q")
    vectors = ("k",)
    late = ("c",)

    @staticmethod
    def step(a, x, u, s, v, late):
        r = softplus(a.a)
        m = late("c", torch.tanh(r) * s.h - s.q)
        p = maximum(0.5 * s.p, torch.tanh(x.b + u.b * v.k))
        q = torch.tanh(m) + x.c / (1 + r)
        return State(h=p * torch.sigmoid(q), p=p, q=torch.tanh(q))


class Smooth(Cell):
    """The same without a maximum, whose gradient jumps where rounding changes what is larger."""

    gates = MadeUp.gates
    states = MadeUp.states
    vectors = MadeUp.vectors
    late = MadeUp.late

    @staticmethod
    def step(a, x, u, s, v, late):
        r = softplus(a.a)
        m = late("c", torch.tanh(r) * s.h - s.q)
        p = 0.5 * s.p + torch.tanh(x.b + u.b * v.k)
        q = torch.tanh(m) + x.c / (1 + r)
        return State(h=p * torch.sigmoid(q), p=p, q=torch.tanh(q))
