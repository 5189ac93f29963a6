"""Cells with nothing of the LSTM's shape: three states, a second product, names that clash."""

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


class Awkward(Cell):
    """Names that code around a step uses as well, powers, and a state that is a number."""

    gates = ("at", "out", "d")
    states = ("out", "h", "one")
    vectors = ("out", "bound")

    @staticmethod
    def step(a, s, v):
        h = torch.sigmoid(a.out + v.out * s.out) * s.h + torch.clamp(a.at, -1, 1) ** 3
        scale = 1 / (2 + abs(v.bound)) + 0.1 * 2**-a.d
        return State(out=torch.tanh(h * scale) + 0.1 * s.one, h=h, one=0.5)


class Delayed(Cell):
    """States that are a product, or what another was, one named as printed code might be."""

    gates = ("n", "z")
    states = ("h", "h_previous_0", "drive")

    @staticmethod
    def step(a, x, s):
        h = torch.tanh(a.n + 0.5 * s.h_previous_0) + torch.sigmoid(a.z) * s.drive
        return State(h=h, h_previous_0=s.h, drive=x.n)
