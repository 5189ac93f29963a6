"""The CRF against sums over all paths, torch's own gradients and finite differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import BackendError, ConfigError, ShapeError
from seqloom.kernels import crf_sums
from seqloom.nn.crf import CRF
from seqloom.nn.crf_softmax import TagSoftmax

K = 3
LENGTHS = [4, 1, 3]


def random_crf(seed: int, *, constrained: bool = False, scale: float = 1.0, **options) -> CRF:
    generator = torch.Generator().manual_seed(seed)
    crf = CRF(K, **options).double()
    with torch.no_grad():
        for weight in crf.parameters():
            weight.copy_(scale * torch.randn(weight.shape, generator=generator).double())
    if constrained:  # 0 = O, 1 = B, 2 = I: I only after B or I
        allowed = torch.tensor([[True, True, False], [True, True, True], [True, True, True]])
        crf.constrain(allowed, torch.tensor([True, True, False]), torch.ones(K, dtype=torch.bool))
    return crf


def random_scores(seed: int, rows: int = 3, steps: int = 4, scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(rows, steps, K, generator=generator, dtype=torch.float64)


def all_paths(crf: CRF, scores: torch.Tensor) -> dict[tuple[int, ...], float]:
    """The score of every legal path of one row, term by term."""
    s = scores.detach().numpy()
    pairs, start, end = (w.detach().numpy() for w in (crf.transitions, crf.start, crf.end))
    legal, first, last = crf.allowed.numpy(), crf.allowed_start.numpy(), crf.allowed_end.numpy()
    found = {}
    for path in itertools.product(range(K), repeat=len(s)):
        steps = list(itertools.pairwise(path))
        if not (first[path[0]] and last[path[-1]] and all(legal[p] for p in steps)):
            continue
        total = start[path[0]] + end[path[-1]] + sum(s[t, y] for t, y in enumerate(path))
        found[path] = float(total + sum(pairs[p] for p in steps))
    return found


def log_total(paths: dict[tuple[int, ...], float]) -> float:
    largest = max(paths.values())
    return largest + math.log(sum(math.exp(v - largest) for v in paths.values()))


CASES = [(False, 1.0), (True, 1.0), (True, 400.0)]
IDS = ["free", "constrained", "large"]


@pytest.mark.parametrize("backend", ["compiled", "reference"])
@pytest.mark.parametrize(("constrained", "scale"), CASES, ids=IDS)
def test_partition_and_marginals_equal_the_sum_over_all_paths(backend, constrained, scale):
    for seed in range(3):
        crf = random_crf(seed, constrained=constrained, backend=backend)
        scores = random_scores(seed + 10, scale=scale)
        lengths = torch.tensor(LENGTHS)
        totals, shares = crf.log_partition(scores, lengths), crf.marginals(scores, lengths)
        for b, n in enumerate(LENGTHS):
            paths = all_paths(crf, scores[b, :n])
            expected = log_total(paths)
            assert totals[b].item() == pytest.approx(expected, rel=1e-12)
            marginal = np.zeros((4, K))
            for path, value in paths.items():
                for t, y in enumerate(path):
                    marginal[t, y] += math.exp(value - expected)
            assert_close(shares[b], torch.from_numpy(marginal), atol=1e-9, rtol=1e-9)


def test_far_apart_scores_lose_nothing():
    """Where the only legal way goes through tags e^-2000 below the best, powers underflow."""
    crf = random_crf(0, constrained=True)
    allowed = torch.tensor([[False, True, False], [False, False, True], [True, False, False]])
    crf.constrain(allowed, torch.tensor([True, False, False]), torch.ones(K, dtype=torch.bool))
    scores = torch.tensor([[[0.0, 5000, 5000], [5000, 0, 5000], [5000, 5000, 0]]]).double()
    scores.requires_grad_()
    ((path, expected),) = all_paths(crf, scores[0]).items()
    total = crf.log_partition(scores)
    assert total.item() == pytest.approx(expected, rel=1e-12)
    total.sum().backward()
    assert scores.grad[0].argmax(dim=1).tolist() == list(path)
    pairs = torch.zeros(K, K).double()
    for pair in itertools.pairwise(path):
        pairs[pair] += 1
    assert_close(crf.transitions.grad, pairs)


def by_both_backends(size, lengths, change):
    """Losses and all gradients by the compiled sums and by torch's own logarithms."""
    generator = torch.Generator().manual_seed(size)
    shape = len(lengths), max(lengths)
    scores = torch.randn(*shape, size, generator=generator, dtype=torch.float64)
    tags = torch.randint(size, shape, generator=generator)
    found = []
    for backend in ("compiled", "reference"):
        generator.manual_seed(0)
        crf, given = CRF(size, backend=backend).double(), scores.clone()
        with torch.no_grad():
            for weight in crf.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator))
            change(crf, given, generator)
        given.requires_grad_()
        loss = crf.loss(given, tags, torch.tensor(lengths))
        (loss * torch.arange(1.0, shape[0] + 1).double()).sum().backward()
        found.append([loss.detach(), given.grad, *(w.grad for w in crf.parameters())])
    return found


@pytest.fixture
def redone(monkeypatch):
    """How often rows were in doubt and their sums taken again: forward, backward."""
    calls = {"totals_by_logs": 0, "marginals_by_logs": 0}

    def spy(name, loop):
        def counted(*given):
            calls[name] += 1
            return loop(*given)

        monkeypatch.setattr(crf_sums, name, counted)

    for name in calls:
        spy(name, getattr(crf_sums, name))
    return calls


@pytest.mark.parametrize("size", [1, 2, 7, 16])
@pytest.mark.parametrize("lengths", [[3], [1, 5, 4, 2, 5, 3], [6] * 8], ids=["one", "six", "eight"])
def test_scores_of_a_hundred_agree_with_sums_of_logarithms(size, lengths, redone):
    def change(crf, scores, generator):
        scores.copy_(200 * torch.rand(scores.shape, generator=generator) - 100)
        crf.transitions.mul_(5)

    for ours, expected in zip(*by_both_backends(size, lengths, change), strict=True):
        assert_close(ours, expected, atol=1e-10, rtol=1e-10)
    assert redone == {"totals_by_logs": 0, "marginals_by_logs": 0}


def test_only_what_is_out_of_reach_is_done_again_by_logarithms(redone):
    """A batch of a row of large scores, one where only the way back is in doubt, and plain ones."""

    def change(crf, scores, generator):
        scores[1] *= 900
        crf.transitions[0, 1] = -138.0
        crf.end[2] = -440.0
        scores[3, :, 0] = 100.0
        crf.constrain(
            torch.rand(7, 7, generator=generator) > 0.3,
            torch.ones(7, dtype=torch.bool),
            torch.ones(7, dtype=torch.bool),
        )

    ours, expected = by_both_backends(7, [4, 5, 2, 5, 1], change)
    legal = expected[0] < 1e29  # where the given path is not, its loss is large in both
    assert legal.any()
    assert_close(ours[0][legal], expected[0][legal], atol=1e-10, rtol=1e-10)
    for mine, theirs in zip(ours[1:], expected[1:], strict=True):
        assert_close(mine, theirs, atol=1e-10, rtol=1e-10)
    assert redone == {"totals_by_logs": 1, "marginals_by_logs": 1}


def test_the_way_back_alone_can_be_in_doubt(redone):
    def change(crf, scores, generator):
        crf.transitions[0, 1] = -138.0
        crf.end[2] = -440.0
        scores[:, :, 0] = 100.0

    for ours, expected in zip(*by_both_backends(7, [4, 2, 3], change), strict=True):
        assert_close(ours, expected, atol=1e-10, rtol=1e-10)
    assert redone == {"totals_by_logs": 0, "marginals_by_logs": 1}


def test_a_tag_that_a_step_forbids_has_no_share(redone):
    """A score of minus infinity, as one who masks tags writes it."""
    crf, scores = random_crf(11), random_scores(11)
    scores[:, 1, 2] = -math.inf
    for rows in (scores, 500 * scores):
        totals, shares = crf.log_partition(rows), crf.marginals(rows)
        for b in range(3):
            paths = {p: v for p, v in all_paths(crf, rows[b]).items() if p[1] != 2}
            assert totals[b].item() == pytest.approx(log_total(paths), rel=1e-12)
        assert not shares[:, 1, 2].any()
        assert_close(shares.sum(dim=2), torch.ones(3, 4).double())
    assert redone["totals_by_logs"] > 0


@pytest.mark.parametrize("constrained", [False, True])
def test_best_paths_equal_the_sorted_list_of_all(constrained):
    for seed in range(3):
        crf = random_crf(seed, constrained=constrained)
        scores, lengths = random_scores(seed + 20), torch.tensor(LENGTHS)
        single, several = crf.decode(scores, lengths), crf.best(scores, lengths, 5)
        for b, n in enumerate(LENGTHS):
            paths = all_paths(crf, scores[b, :n])
            ranked = sorted(paths, key=paths.__getitem__, reverse=True)[:5]
            assert single[b, :n].tolist() == list(ranked[0])
            assert not single[b, n:].any()
            found = [row[:n].tolist() for row in several.tags[b]]
            assert found[: len(ranked)] == [list(path) for path in ranked]
            expected = torch.tensor([paths[path] for path in ranked], dtype=torch.float64)
            assert_close(several.scores[b, : len(ranked)], expected)
            assert (several.scores[b, len(ranked) :] < -1e29).all()


def test_loss_is_minus_the_log_probability_of_the_path_and_gradients_agree():
    scores, lengths = random_scores(3), torch.tensor(LENGTHS)
    tags = torch.tensor([[0, 1, 2, 0], [1, 2, 2, 2], [1, 2, 0, 1]])
    found = []
    for backend in ("compiled", "reference"):
        crf = random_crf(4, constrained=True, backend=backend)
        given = scores.clone().requires_grad_()
        loss = crf.loss(given, tags, lengths)
        for b, n in enumerate(LENGTHS):
            paths = all_paths(crf, scores[b, :n])
            expected = log_total(paths) - paths[tuple(tags[b, :n].tolist())]
            assert loss[b].item() == pytest.approx(expected, rel=1e-12)
        (loss * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        found.append([given.grad, *(weight.grad for weight in crf.parameters())])
    for compiled, reference in zip(*found, strict=True):
        assert_close(compiled, reference)


def test_gradients_match_finite_differences():
    crf = random_crf(5)
    lengths, tags = torch.tensor(LENGTHS), torch.randint(K, (3, 4))

    def loss(scores, transitions, start, end):
        weights = {"transitions": transitions, "start": start, "end": end}
        call = torch.func.functional_call
        return call(
            _Loss(crf), {f"crf.{k}": v for k, v in weights.items()}, (scores, tags, lengths)
        )

    given = [random_scores(6), *(w.detach().clone() for w in crf.parameters())]
    assert torch.autograd.gradcheck(loss, [each.requires_grad_() for each in given])


class _Loss(torch.nn.Module):
    def __init__(self, crf):
        super().__init__()
        self.crf = crf

    def forward(self, *given):
        return self.crf.loss(*given)


def test_padding_never_changes_a_result():
    crf, lengths = random_crf(7, constrained=True), torch.tensor(LENGTHS)
    scores = random_scores(8)
    rubbish = scores.clone()
    for b, n in enumerate(LENGTHS):
        rubbish[b, n:] = math.nan
    assert torch.equal(crf.log_partition(rubbish, lengths), crf.log_partition(scores, lengths))
    for b, n in enumerate(LENGTHS):
        alone = crf.log_partition(scores[b : b + 1, :n])
        assert_close(crf.log_partition(rubbish, lengths)[b], alone[0])
    assert not crf.marginals(rubbish, lengths)[1, 1:].any()


def test_single_precision_and_a_score_that_is_no_number():
    crf, scores = random_crf(9), random_scores(9)
    assert_close(
        crf.float().log_partition(scores.float()).double(), crf.double().log_partition(scores)
    )
    scores[0, 1, 2] = math.nan
    assert crf.log_partition(scores).isnan().tolist() == [True, False, False]


def test_refuses_what_does_not_fit():
    crf = CRF(K)
    with pytest.raises(ShapeError, match=r"\(batch, steps, 3\).*got \(1, 2, 4\)"):
        crf.decode(torch.zeros(1, 2, 4))
    with pytest.raises(ShapeError, match="got 0 to 2"):
        crf.decode(torch.zeros(2, 2, K), torch.tensor([2, 0]))
    with pytest.raises(ShapeError, match=r"tags must have shape \(1, 2\), got \(1, 3\)"):
        crf.loss(torch.zeros(1, 2, K), torch.zeros(1, 3, dtype=torch.long))
    with pytest.raises(ShapeError, match="allowed must be booleans"):
        crf.constrain(torch.ones(K, K), torch.ones(K).bool(), torch.ones(K).bool())
    with pytest.raises(ConfigError, match="got 0"):
        crf.best(torch.zeros(1, 2, K), None, 0)
    with pytest.raises(BackendError, match="'numba'"):
        CRF(K, backend="numba")
    with pytest.raises(BackendError, match="meta"):
        CRF(K, backend="compiled").log_partition(torch.zeros(1, 2, K, device="meta"))


@pytest.mark.parametrize("layer", [CRF(K), CRF(K, backend="reference"), TagSoftmax(K)])
@pytest.mark.parametrize("wrong", [K, -1, 100_000])
def test_a_tag_out_of_range_is_refused_where_it_is_real(layer, wrong):
    scores, tags = torch.randn(2, 3, K), torch.tensor([[0, 1, 2], [2, 1, 0]])
    expected = layer.loss(scores, tags, torch.tensor([3, 2]))
    tags[1, 2] = wrong
    assert_close(layer.loss(scores, tags, torch.tensor([3, 2])), expected)
    with pytest.raises(ShapeError, match=rf"tags must lie in 0\.\.2, got {wrong}$"):
        layer.loss(scores, tags)


def test_no_more_paths_are_looked_for_than_there_are():
    crf, scores = random_crf(1), random_scores(2)[:, :2]
    several = crf.best(scores, None, 10**12)
    assert several.tags.shape == (3, K**2, 2)
    for b in range(3):
        paths = all_paths(crf, scores[b])
        expected = sorted(paths.values(), reverse=True)
        assert_close(several.scores[b], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.gpu
def test_scores_on_a_gpu_give_what_they_give_on_the_processor():
    tags, lengths = torch.tensor([[0, 1, 2, 0], [1, 2, 2, 2], [1, 2, 0, 1]]), torch.tensor(LENGTHS)
    found = []
    for device in ("cpu", "cuda"):
        crf = random_crf(4, constrained=True).to(device)
        scores = random_scores(3).to(device).requires_grad_()
        given = scores, tags.to(device), lengths.to(device)
        loss = crf.loss(*given)
        loss.sum().backward()
        best = crf.best(scores, given[2], 3)
        shares = crf.marginals(scores, given[2])
        results = [loss, scores.grad, crf.transitions.grad, best.tags, best.scores, shares]
        found.append([each.detach().cpu() for each in results])
    for ours, expected in zip(*found, strict=True):
        assert_close(ours, expected)
