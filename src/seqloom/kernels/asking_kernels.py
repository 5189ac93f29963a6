"""The steps of a recurrence that asks a question at every step, forth and back; see `asking`."""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"

import triton
import triton.language as tl


@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def _tile(at, rows, columns, width, real):
    """A matrix, zero where it is not real."""
    return tl.load(at + rows[:, None] * width + columns[None, :], mask=real, other=0.0)


@triton.jit(do_not_specialize=["T", "S"])
def forth(
    own, others, items, keys, given, asking, w_state, w_out, w_ih, b_ih, w_hh, b_hh,
    lengths, asked, states, shares, sums, gates, inputs, found, opened, T, S,
    H: tl.constexpr, D: tl.constexpr, HP: tl.constexpr, SP: tl.constexpr, GATED: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    h, s, k = tl.arange(0, HP), tl.arange(0, SP), tl.arange(0, CHUNK)
    real_h = h < H
    square = real_h[:, None] & real_h[None, :]
    n, m = tl.load(lengths + row), tl.load(asked + row)
    real_s = s < m
    out = tl.load(w_out + h, mask=real_h, other=0.0)
    other = _tile(others + row * S * H, s, h, H, real_s[:, None] & real_h[None, :])
    v = tl.zeros([HP], tl.float32)
    for t in range(n):
        at = row * T + t
        a = tl.load(own + at * H + h, mask=real_h, other=0.0)
        a += tl.sum(_tile(w_state, h, h, H, square) * v[None, :], axis=1)
        score = tl.sum(_tanh(other + a[None, :]) * out[None, :], axis=1)
        score = tl.where(real_s, score, float("-inf"))
        power = tl.exp(score - tl.max(score, axis=0))
        share = power / tl.sum(power, axis=0)
        tl.store(shares + at * S + s, share, mask=real_s)
        tl.store(sums + at * H + h, a, mask=real_h)
        own_r = tl.load(b_ih + h, mask=real_h, other=0.0)
        own_z = tl.load(b_ih + H + h, mask=real_h, other=0.0)
        own_n = tl.load(b_ih + 2 * H + h, mask=real_h, other=0.0)
        for begin in range(0, 2 * D, CHUNK):
            j = begin + k
            real, is_found = j < 2 * D, (j >= D) & (j < 2 * D)
            some = real_s[:, None] & is_found[None, :]
            key = _tile(keys + row * S * D, s, j - D, D, some)
            both = tl.sum(key * share[:, None], axis=0)
            tl.store(found + at * D + j - D, both, mask=is_found)
            both += tl.load(items + at * D + j, mask=j < D, other=0.0)
            if GATED:
                some = real_s[:, None] & real[None, :]
                asks = _tile(asking + row * S * 2 * D, s, j, 2 * D, some)
                gate = tl.load(given + at * 2 * D + j, mask=real, other=0.0)
                gate = tl.sigmoid(gate + tl.sum(asks * share[:, None], axis=0))
                tl.store(opened + at * 2 * D + j, gate, mask=real)
                both = gate * both
            both = tl.where(real, both, 0.0)
            tl.store(inputs + at * 2 * D + j, both, mask=real)
            some = real_h[:, None] & real[None, :]
            own_r += tl.sum(_tile(w_ih, h, j, 2 * D, some) * both[None, :], axis=1)
            own_z += tl.sum(_tile(w_ih + H * 2 * D, h, j, 2 * D, some) * both[None, :], axis=1)
            own_n += tl.sum(_tile(w_ih + 2 * H * 2 * D, h, j, 2 * D, some) * both[None, :], axis=1)
        past_r = tl.load(b_hh + h, mask=real_h, other=0.0)
        past_z = tl.load(b_hh + H + h, mask=real_h, other=0.0)
        past_n = tl.load(b_hh + 2 * H + h, mask=real_h, other=0.0)
        past_r += tl.sum(_tile(w_hh, h, h, H, square) * v[None, :], axis=1)
        past_z += tl.sum(_tile(w_hh + H * H, h, h, H, square) * v[None, :], axis=1)
        past_n += tl.sum(_tile(w_hh + 2 * H * H, h, h, H, square) * v[None, :], axis=1)
        r, z = tl.sigmoid(own_r + past_r), tl.sigmoid(own_z + past_z)
        new = _tanh(own_n + r * past_n)
        v = tl.where(real_h, (1 - z) * new + z * v, 0.0)
        tl.store(states + at * H + h, v, mask=real_h)
        tl.store(gates + at * 4 * H + h, r, mask=real_h)
        tl.store(gates + at * 4 * H + H + h, z, mask=real_h)
        tl.store(gates + at * 4 * H + 2 * H + h, new, mask=real_h)
        tl.store(gates + at * 4 * H + 3 * H + h, past_n, mask=real_h)


@triton.jit(do_not_specialize=["T", "S"])
def back(
    d_states, others, items, keys, asking, w_state, w_out, w_ih, w_hh,
    lengths, asked, states, shares, sums, gates, found, opened,
    d_own, d_others, d_items, d_found, d_given, d_out, d_input, d_past, T, S,
    H: tl.constexpr, D: tl.constexpr, HP: tl.constexpr, SP: tl.constexpr, GATED: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    h, s, k = tl.arange(0, HP), tl.arange(0, SP), tl.arange(0, CHUNK)
    real_h = h < H
    square = real_h[:, None] & real_h[None, :]
    n, m = tl.load(lengths + row), tl.load(asked + row)
    real_s = s < m
    pairs = real_s[:, None] & real_h[None, :]
    out = tl.load(w_out + h, mask=real_h, other=0.0)
    other = _tile(others + row * S * H, s, h, H, pairs)
    d_other, d_weight = tl.zeros([SP, HP], tl.float32), tl.zeros([HP], tl.float32)
    dv = tl.zeros([HP], tl.float32)
    for done in range(n):
        t = n - 1 - done
        at = row * T + t
        dv += tl.load(d_states + at * H + h, mask=real_h, other=0.0)
        r = tl.load(gates + at * 4 * H + h, mask=real_h, other=0.0)
        z = tl.load(gates + at * 4 * H + H + h, mask=real_h, other=0.0)
        new = tl.load(gates + at * 4 * H + 2 * H + h, mask=real_h, other=0.0)
        past = tl.load(gates + at * 4 * H + 3 * H + h, mask=real_h, other=0.0)
        there = tl.where(t > 0, H, 0)  # units of the state before: none before the first step
        before = tl.load(states + (at - 1) * H + h, mask=h < there, other=0.0)
        dn = dv * (1 - z) * (1 - new * new)
        dz = dv * (before - new) * z * (1 - z)
        dr = dn * past * r * (1 - r)
        tl.store(d_input + at * 3 * H + h, dr, mask=real_h)
        tl.store(d_input + at * 3 * H + H + h, dz, mask=real_h)
        tl.store(d_input + at * 3 * H + 2 * H + h, dn, mask=real_h)
        tl.store(d_past + at * 3 * H + h, dr, mask=real_h)
        tl.store(d_past + at * 3 * H + H + h, dz, mask=real_h)
        tl.store(d_past + at * 3 * H + 2 * H + h, dn * r, mask=real_h)
        dv = dv * z
        dv += tl.sum(_tile(w_hh, h, h, H, square) * dr[:, None], axis=0)
        dv += tl.sum(_tile(w_hh + H * H, h, h, H, square) * dz[:, None], axis=0)
        dv += tl.sum(_tile(w_hh + 2 * H * H, h, h, H, square) * (dn * r)[:, None], axis=0)
        share = tl.load(shares + at * S + s, mask=real_s, other=0.0)
        d_share = tl.zeros([SP], tl.float32)
        for begin in range(0, 2 * D, CHUNK):
            j = begin + k
            real, is_found = j < 2 * D, (j >= D) & (j < 2 * D)
            some = real_h[:, None] & real[None, :]
            dx = tl.sum(_tile(w_ih, h, j, 2 * D, some) * dr[:, None], axis=0)
            dx += tl.sum(_tile(w_ih + H * 2 * D, h, j, 2 * D, some) * dz[:, None], axis=0)
            dx += tl.sum(_tile(w_ih + 2 * H * 2 * D, h, j, 2 * D, some) * dn[:, None], axis=0)
            if GATED:
                both = tl.load(items + at * D + j, mask=j < D, other=0.0)
                both += tl.load(found + at * D + j - D, mask=is_found, other=0.0)
                gate = tl.load(opened + at * 2 * D + j, mask=real, other=0.0)
                d_gate = dx * both * gate * (1 - gate)
                tl.store(d_given + at * 2 * D + j, d_gate, mask=real)
                some = real_s[:, None] & real[None, :]
                asks = _tile(asking + row * S * 2 * D, s, j, 2 * D, some)
                d_share += tl.sum(asks * d_gate[None, :], axis=1)
                dx = dx * gate
            tl.store(d_items + at * D + j, dx, mask=j < D)
            tl.store(d_found + at * D + j - D, dx, mask=is_found)
            key = _tile(keys + row * S * D, s, j - D, D, real_s[:, None] & is_found[None, :])
            d_share += tl.sum(key * dx[None, :], axis=1)
        d_score = share * (d_share - tl.sum(share * d_share, axis=0))
        a = tl.load(sums + at * H + h, mask=real_h, other=0.0)
        inner = _tanh(other + a[None, :])
        d_weight += tl.sum(d_score[:, None] * inner, axis=0)
        d_inner = d_score[:, None] * out[None, :] * (1 - inner * inner)
        d_other += d_inner
        da = tl.sum(d_inner, axis=0)
        tl.store(d_own + at * H + h, da, mask=real_h)
        dv += tl.sum(_tile(w_state, h, h, H, square) * da[:, None], axis=0)
        dv = tl.where(real_h, dv, 0.0)
    tl.store(d_others + row * S * H + s[:, None] * H + h[None, :], d_other, mask=pairs)
    tl.store(d_out + row * H + h, d_weight, mask=real_h)
