"""The loss over alignments equals torch's and a count of all of them."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import BackendError, ShapeError
from seqloom.kernels import ctc as kernels
from seqloom.nn.ctc import ctc_loss, steps_needed

OURS = ("cpu", "reference")


def labels_of(path, blank):
    merged = [label for label, _ in itertools.groupby(path)]
    return [label for label in merged if label != blank]


def by_counting(log_probs, target, blank):
    """Add up the probabilities of all paths that read as the target."""
    steps, labels = log_probs.shape
    total = 0.0
    for path in itertools.product(range(labels), repeat=steps):
        if labels_of(path, blank) == target:
            total += math.exp(sum(log_probs[t, label].item() for t, label in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("backend", OURS)
@pytest.mark.parametrize("blank", [0, 2])
def test_it_is_the_sum_over_all_alignments(backend, blank):
    torch.manual_seed(0)
    log_probs = torch.randn(1, 5, 3, dtype=torch.float64).log_softmax(-1)
    a, b = [label for label in range(3) if label != blank]
    for target in ([], [a], [a, b], [a, a], [b, b, b], [a, b, a], [a, a, a, a]):
        padded = torch.tensor([[*target, 7]])
        found = ctc_loss(
            log_probs,
            padded,
            torch.tensor([5]),
            torch.tensor([len(target)]),
            blank=blank,
            backend=backend,
        )
        assert found.item() == pytest.approx(by_counting(log_probs[0], target, blank), rel=1e-12)


def some_rows(dtype, sharp, seed=0):
    torch.manual_seed(seed)
    scores = torch.randn(6, 30, 5, dtype=dtype) * sharp
    targets = torch.randint(1, 5, (6, 9))
    lengths = torch.tensor([30, 29, 25, 30, 22, 28])
    return scores.requires_grad_(), targets, lengths, torch.tensor([9, 0, 4, 8, 1, 9])


@pytest.mark.parametrize("backend", OURS)
@pytest.mark.parametrize("sharp", [1.0, 60.0, 2000.0])
def test_loss_and_gradient_equal_torch(backend, sharp):
    scores, *given = some_rows(torch.float64, sharp)
    results = []
    for name in (backend, "torch"):
        scores.grad = None
        losses = ctc_loss(scores.log_softmax(-1), *given, backend=name)
        (losses * torch.arange(1.0, 7.0)).sum().backward()
        results.append((losses.detach(), scores.grad))
    assert_close(*[loss for loss, _ in results])
    assert_close(*[grad for _, grad in results], rtol=1e-6, atol=1e-9)


def test_single_precision_is_closer_to_double_than_its_last_digits():
    scores, *given = some_rows(torch.float32, 3.0)
    exact = ctc_loss(scores.double().log_softmax(-1), *given, backend="torch")
    assert_close(ctc_loss(scores.log_softmax(-1), *given).double(), exact, rtol=1e-5, atol=0)


def test_extreme_rows_are_done_by_logarithms(monkeypatch):
    """Where scaled numbers would run out, the result is still that of the definition."""
    log_probs = torch.full((1, 40, 3), -2000.0, dtype=torch.float64)
    log_probs[0, :20, 1] = 0.0  # says 1 where the only way there is says 2
    log_probs[0, 20:, 2] = 0.0
    given = torch.tensor([[2, 1]]), torch.tensor([40]), torch.tensor([2])
    expected = ctc_loss(log_probs, *given, backend="reference")
    assert_close(ctc_loss(log_probs, *given, backend="cpu"), expected)
    assert expected.item() > 30_000


def test_gradients_match_finite_differences():
    torch.manual_seed(1)
    log_probs = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    given = torch.tensor([[1, 1], [2, 0]]), torch.tensor([4, 3]), torch.tensor([2, 1])
    assert torch.autograd.gradcheck(lambda x: ctc_loss(x, *given), log_probs)


def test_padding_never_changes_a_result():
    scores, targets, lengths, sizes = some_rows(torch.float64, 1.0)
    log_probs = scores.detach().log_softmax(-1)
    whole = ctc_loss(log_probs, targets, lengths, sizes)
    for b, (steps, size) in enumerate(zip(lengths.tolist(), sizes.tolist(), strict=True)):
        alone = ctc_loss(
            log_probs[b : b + 1, :steps],
            targets[b : b + 1, :size],
            lengths[b : b + 1],
            sizes[b : b + 1],
        )
        assert torch.equal(alone[0], whole[b])


@pytest.mark.parametrize("backend", OURS)
def test_too_few_steps_are_impossible(backend):
    log_probs = torch.zeros(2, 3, 2, dtype=torch.float64, requires_grad=True)
    targets, sizes = torch.tensor([[1, 1], [1, 0]]), torch.tensor([2, 1])
    assert steps_needed(targets, sizes).tolist() == [3, 1]
    losses = ctc_loss(log_probs, targets, torch.tensor([2, 2]), sizes, backend=backend)
    assert losses[0] == torch.inf and losses[1].item() == pytest.approx(-math.log(3))
    if backend == "cpu":
        losses.sum().backward()
        assert not log_probs.grad[0].any()


@pytest.mark.parametrize("backend", ["cpu", "torch", "reference"])
def test_what_is_impossible_is_infinite_and_moves_nothing(backend):
    torch.manual_seed(0)
    given = torch.randn(4, 2, 3, dtype=torch.float64).requires_grad_()
    targets, lengths = torch.tensor([[1, 1], [1, 2], [2, -1], [1, -1]]), torch.tensor([2] * 4)
    log_probs = given.log_softmax(-1)
    never = torch.zeros(4, 2, 3, dtype=torch.bool)
    never[2, :, 2] = True  # a label of probability 0
    sizes = torch.tensor([2, 2, 1, 1])
    losses = ctc_loss(
        log_probs.masked_fill(never, -math.inf), targets, lengths, sizes, backend=backend
    )
    assert losses.isinf().tolist() == [True, False, True, False]
    losses.sum().backward()
    assert not given.grad[0].any()
    expected = torch.zeros_like(given.grad)
    for row, target in ((1, [1, 2]), (3, [1])):
        alone = given.detach()[row : row + 1].clone().requires_grad_()
        labels, count = torch.tensor([target]), torch.tensor([len(target)])
        args = (alone.log_softmax(-1).transpose(0, 1), labels, torch.tensor([2]), count)
        torch.nn.functional.ctc_loss(*args, reduction="none").sum().backward()
        expected[row] = alone.grad[0]
    assert_close(given.grad[[0, 1, 3]], expected[[0, 1, 3]])


def test_a_certain_label_costs_nothing_with_torch_too():
    certain = torch.tensor([[[-math.inf, 0.0], [-math.inf, 0.0]]])
    args = (certain, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))
    assert ctc_loss(*args, backend="torch").tolist() == [0.0]


def test_not_a_number_stays_one():
    log_probs = torch.full((1, 3, 2), torch.nan)
    assert ctc_loss(log_probs, torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1])).isnan()


def test_bad_input_is_refused():
    log_probs, one = torch.zeros(1, 3, 2), torch.tensor([1])
    with pytest.raises(ShapeError, match=r"shape \(B, T, C\).*got .*\(3, 2\)"):
        ctc_loss(log_probs[0], torch.tensor([[1]]), one, one)
    with pytest.raises(ShapeError, match=r"lie in 0..1 and not be the blank 0, got 2"):
        ctc_loss(log_probs, torch.tensor([[2]]), one, one)
    with pytest.raises(ShapeError, match=r"not be the blank 0, got 0"):
        ctc_loss(log_probs, torch.tensor([[0]]), one, one)
    with pytest.raises(ShapeError, match=r"lengths must lie in 1..3, got 4 to 4"):
        ctc_loss(log_probs, torch.tensor([[1]]), torch.tensor([4]), one)
    with pytest.raises(ShapeError, match=r"target_lengths must lie in 0..1, got 2 to 2"):
        ctc_loss(log_probs, torch.tensor([[1]]), one, torch.tensor([2]))
    with pytest.raises(BackendError, match=r"'gpu'.*known: auto, cpu"):
        ctc_loss(log_probs, torch.tensor([[1]]), one, one, backend="gpu")


def test_the_doubt_is_part_of_the_compiled_code():
    assert 0 < kernels.LOST < kernels.TINY * kernels.LEAST
