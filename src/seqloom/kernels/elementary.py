r"""Elementary functions for compiled loops, in a form that works on many numbers at once.

The loops that the cell compiler prints call these on single numbers, and the compiler below numba
makes vectors of them, which it cannot do with a call into the system's mathematics library. In
single precision they are polynomials, a few units in the last place from the true value; in double
precision, which is for checking, they are the library's. A value that is not a number stays one.

Exponential and logarithm: the reductions and polynomials of Cephes (Moshier 1989), `expf` and
`logf`; hyperbolic tangent: the rational approximation Eigen uses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from seqloom.compiled import inner_real

_F, _I = np.float32, np.int32
_ROUND = _F(1.5 * 2**23)  # added to a small number, it leaves the nearest integer in the low bits


def _reinterpreted(source: Any, target: Any, bits: Any) -> Any:
    @intrinsic
    def cast(typing_context, number):  # type: ignore[no-untyped-def]
        del typing_context, number

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            del context, signature
            return builder.bitcast(arguments[0], bits)

        return target(source), generate

    return cast


_as_bits = _reinterpreted(types.float32, types.int32, ir.IntType(32))
_as_real = _reinterpreted(types.int32, types.float32, ir.FloatType())


@inner_real
def _bounded(x, low, high):  # type: ignore[no-untyped-def]
    x = high if x > high else x
    return low if x < low else x


@inner_real
def _exp_of_rest(r):  # type: ignore[no-untyped-def]
    p = _F(1.9875691500e-4)
    p = p * r + _F(1.3981999507e-3)
    p = p * r + _F(8.3334519073e-3)
    p = p * r + _F(4.1665795894e-2)
    p = p * r + _F(1.6666665459e-1)
    p = p * r + _F(5.0000001201e-1)
    return p * r * r + r + _F(1)


@inner_real
def exp32(x):  # type: ignore[no-untyped-def]
    r"""$e^x = 2^n e^r$ with $n$ the integer nearest to $x \log_2 e$."""
    y = _bounded(x, _F(-87.3), _F(88.7))
    shifted = y * _F(1.44269504) + _ROUND
    n = shifted - _ROUND
    r = y - n * _F(0.693359375) - n * _F(-2.12194440e-4)
    # In two halves, as 2^128 does not fit while e^88.7 does.
    half = (_as_bits(shifted) - _as_bits(_ROUND)) >> _I(1)
    rest = _as_bits(shifted) - _as_bits(_ROUND) - half
    power = _as_real((half + _I(127)) << _I(23)) * _as_real((rest + _I(127)) << _I(23))
    found = _exp_of_rest(r) * power
    found = _F(0) if x < _F(-103.9) else found
    return _F(np.inf) if x > _F(88.72284) else found


@inner_real
def _exp_within(y):  # type: ignore[no-untyped-def]
    """The exponential of a number for which one power of 2 is enough."""
    shifted = y * _F(1.44269504) + _ROUND
    n = shifted - _ROUND
    r = y - n * _F(0.693359375) - n * _F(-2.12194440e-4)
    power = _as_real((_as_bits(shifted) - _as_bits(_ROUND) + _I(127)) << _I(23))
    return _exp_of_rest(r) * power


@inner_real
def sigmoid32(x):  # type: ignore[no-untyped-def]
    r"""$1 / (1 + e^{-x})$."""
    return _F(1) / (_F(1) + _exp_within(_bounded(-x, _F(-87.3), _F(88.3))))


@inner_real
def tanh32(x):  # type: ignore[no-untyped-def]
    r"""$x \, p(x^2) / q(x^2)$ below 1, $1 - 2 / (1 + e^{2x})$ above.

    Above, $1 - \tanh^2$, which the way back needs, would lose digits by the quotient.
    """
    z = x * x
    p = _F(-2.76076847742355e-16)
    p = p * z + _F(2.00018790482477e-13)
    p = p * z + _F(-8.60467152213735e-11)
    p = p * z + _F(5.12229709037114e-08)
    p = p * z + _F(1.48572235717979e-05)
    p = p * z + _F(6.37261928875436e-04)
    p = p * z + _F(4.89352455891786e-03)
    q = _F(1.19825839466702e-06)
    q = q * z + _F(1.18534705686654e-04)
    q = q * z + _F(2.26843463243900e-03)
    q = q * z + _F(4.89352518554385e-03)
    small = x * (p / q)
    large = _F(1) - _F(2) / (_F(1) + _exp_within(_bounded(_F(2) * abs(x), _F(0), _F(20))))
    large = large if x > _F(0) else -large
    return small if z < _F(1) else large


@inner_real
def log32(x):  # type: ignore[no-untyped-def]
    r"""$\log x = e \log 2 + \log m$ with $m$ between $\sqrt{1/2}$ and $\sqrt 2$."""
    y = x * _F(2**25) if x < _F(1.1754944e-38) else x  # so that what is subnormal has its digits
    bits = _as_bits(y)
    exponent = ((bits >> _I(23)) & _I(255)) - _I(126)
    m = _as_real((bits & _I(0x007FFFFF)) | _I(0x3F000000))  # between 1/2 and 1
    is_low = m < _F(0.707106781)
    e = _F(exponent) - (_F(1) if is_low else _F(0)) - (_F(25) if x < _F(1.1754944e-38) else _F(0))
    r = (m + m if is_low else m) - _F(1)
    z = r * r
    p = _F(7.0376836292e-2)
    p = p * r + _F(-1.1514610310e-1)
    p = p * r + _F(1.1676998740e-1)
    p = p * r + _F(-1.2420140846e-1)
    p = p * r + _F(1.4249322787e-1)
    p = p * r + _F(-1.6668057665e-1)
    p = p * r + _F(2.0000714765e-1)
    p = p * r + _F(-2.4999993993e-1)
    p = p * r + _F(3.3333331174e-1)
    found = r * z * p + e * _F(-2.12194440e-4) - _F(0.5) * z + r + e * _F(0.693359375)
    found = x if x == _F(np.inf) else found
    found = _F(-np.inf) if x == _F(0) else found
    return found if x >= _F(0) else _F(np.nan)


@inner_real
def softplus32(x):  # type: ignore[no-untyped-def]
    r"""$\log(1 + e^x) = \max(x, 0) + \log(1 + e^{-|x|})$, with its last digits on both sides."""
    small = exp32(-abs(x))
    u = _F(1) + small
    lost = u - _F(1)  # what of `small` the sum holds
    tail = small if lost == _F(0) else log32(u) * small / lost
    return (x if x > _F(0) else _F(0)) + tail


@inner_real
def exp64(x):  # type: ignore[no-untyped-def]
    r"""$e^x$."""
    return math.exp(x)


@inner_real
def sigmoid64(x):  # type: ignore[no-untyped-def]
    r"""$1 / (1 + e^{-x})$."""
    return 1.0 / (1.0 + math.exp(-x))


@inner_real
def tanh64(x):  # type: ignore[no-untyped-def]
    r"""$\tanh x$."""
    return math.tanh(x)


@inner_real
def log64(x):  # type: ignore[no-untyped-def]
    r"""$\log x$."""
    return math.log(x)


@inner_real
def softplus64(x):  # type: ignore[no-untyped-def]
    r"""$\log(1 + e^x)$."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inner_real
def sqrt(x):  # type: ignore[no-untyped-def]
    r"""$\sqrt x$."""
    return math.sqrt(x)


@inner_real
def relu(x, zero):  # type: ignore[no-untyped-def]
    """The larger of x and 0, which is given in x's precision."""
    return zero if x <= zero else x


@inner_real
def maximum(x, y):  # type: ignore[no-untyped-def]
    """The larger one; not a number if one is not."""
    larger = x if x > y else y
    return x if x != x else larger  # noqa: PLR0124 (so for what is not a number)


@inner_real
def minimum(x, y):  # type: ignore[no-untyped-def]
    """The smaller one; not a number if one is not."""
    smaller = x if x < y else y
    return x if x != x else smaller  # noqa: PLR0124


@inner_real
def step(x, zero, one):  # type: ignore[no-untyped-def]
    """1 above zero."""
    return one if x > zero else zero


@inner_real
def half_step(x, zero, half, one):  # type: ignore[no-untyped-def]
    """1 above zero, a half at zero."""
    above = one if x > zero else zero
    return half if x == zero else above


@inner_real
def sign(x, zero, one):  # type: ignore[no-untyped-def]
    """1, 0 or -1."""
    above = one if x > zero else zero
    return -one if x < zero else above
