"""The scores of additive attention and their gradients, tile by tile; see `additive`."""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"

import triton
import triton.language as tl


@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def _load(at, real):
    """Numbers of any width in 32 bits, zero where they are not real."""
    return tl.load(at, mask=real, other=0.0).to(tl.float32)


@triton.jit(do_not_specialize=["T", "S"])
def forth(
    own, prepared, weight, scores, T, S,
    A: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr, BA: tl.constexpr,
):  # fmt: skip
    """The scores of some queries of a row with some of its keys."""
    blocks = tl.cdiv(T, BT)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    first_t, first_s = tl.program_id(0) % blocks * BT, tl.program_id(1) * BS
    t = first_t + tl.arange(0, BT)[:, None, None]
    s = first_s + tl.arange(0, BS)[None, :, None]
    k = tl.arange(0, BA)[None, None, :]
    own_at, prepared_at = own + row * T * A + t * A, prepared + row * S * A + s * A
    total = tl.zeros([BT, BS, BA], tl.float32)
    for begin in range(0, A, BA):
        a = begin + k
        inner = _load(own_at + a, (t < T) & (a < A)) + _load(prepared_at + a, (s < S) & (a < A))
        total += _load(weight + a, a < A) * _tanh(inner)
    t, s = first_t + tl.arange(0, BT)[:, None], first_s + tl.arange(0, BS)[None, :]
    tl.store(scores + row * T * S + t * S + s, tl.sum(total, axis=2), mask=(t < T) & (s < S))


@triton.jit(do_not_specialize=["M", "N"])
def back(
    mine, others, weight, d_scores, d_mine, d_weight, M, N,
    A: tl.constexpr, TURNED: tl.constexpr, WEIGHED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BA: tl.constexpr,
):  # fmt: skip
    """Some columns of the gradients of some of a row's M vectors, which meet N others.

    The gradients of the scores are (M, N), or (N, M) where `TURNED`; where `WEIGHED`, those of the
    weights are added over the program's vectors as well.
    """
    blocks = tl.cdiv(M, BM)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    first_m, first_a = tl.program_id(0) % blocks * BM, tl.program_id(1) * BA
    m = first_m + tl.arange(0, BM)[:, None, None]
    k = tl.arange(0, BN)[None, :, None]
    a = first_a + tl.arange(0, BA)[None, None, :]
    x = _load(mine + row * M * A + m * A + a, (m < M) & (a < A))
    others_at, d_scores_at = others + row * N * A + a, d_scores + row * M * N
    total, weighed = tl.zeros([BM, BN, BA], tl.float32), tl.zeros([BM, BN, BA], tl.float32)
    for begin in range(0, N, BN):
        n = begin + k
        inner = _tanh(x + _load(others_at + n * A, (n < N) & (a < A)))
        d_score = _load(d_scores_at + (n * M + m if TURNED else m * N + n), (m < M) & (n < N))
        total += d_score * (1 - inner * inner)
        if WEIGHED:
            weighed += d_score * inner
    m, a = first_m + tl.arange(0, BM)[:, None], first_a + tl.arange(0, BA)[None, :]
    found = tl.sum(total, axis=1) * _load(weight + a, a < A)
    tl.store(d_mine + row * M * A + m * A + a, found, mask=(m < M) & (a < A))
    if WEIGHED:
        a = first_a + tl.arange(0, BA)
        summed = tl.sum(tl.sum(weighed, axis=1), axis=0)
        tl.store(d_weight + tl.program_id(0).to(tl.int64) * A + a, summed, mask=a < A)
