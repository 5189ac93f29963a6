"""Connectionist temporal classification: a loss for labels that are not aligned with the input."""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from seqloom.errors import BackendError, ShapeError, one_of

BACKENDS = ("auto", "cpu", "torch", "reference")
Backend = Literal["auto", "cpu", "torch", "reference"]
NEVER = -1e30  # the logarithm of 0, as far as sums go; an infinite one has no gradient


def ctc_loss(
    log_probs: Float[Tensor, "B T C"],
    targets: Int[Tensor, "B L"],
    lengths: Int[Tensor, " B"],
    target_lengths: Int[Tensor, " B"],
    *,
    blank: int = 0,
    backend: Backend = "auto",
) -> Float[Tensor, " B"]:
    r"""The negative log-probability of each row's labels, summed over all alignments.

    $$-\ln p(l \mid x) = -\ln \sum_{\pi \in B^{-1}(l)} \prod_t y_t(\pi_t)$$

    where B takes a label a step, makes one of equal neighbours and then leaves out blanks.

    Paper: Graves et al. (2006), "Connectionist Temporal Classification: Labelling Unsegmented
    Sequence Data with Recurrent Neural Networks", ICML, equations 3 to 15.
    Differs from the paper: the gradient is that of `log_probs` as they are given, whether or not a
    softmax made them; behind one, it becomes equation 16.

    Args:
        log_probs: Of each label at each step.
        targets: The labels of each row, without blanks; what is padded is not looked at.
        lengths: How many steps of each row are real, at least 1.
        target_lengths: How many labels each row has; none is allowed.
        blank: The number of the blank.
        backend: "cpu" is compiled, "torch" is torch's own, "reference" the visible loop; "auto"
            takes "cpu" on a processor and "torch" elsewhere.

    Returns:
        A loss a row; infinite, with a gradient of 0, where a row has fewer steps than its labels
        take: one each, and one between two that are equal.

    Raises:
        ShapeError: If shapes do not agree, or a label or a length is out of range.
    """
    _check(log_probs, targets, lengths, target_lengths, blank)
    if backend not in BACKENDS:
        raise BackendError(one_of("backend", backend, BACKENDS))
    on_processor = log_probs.device.type == "cpu"
    if backend == "cpu" and not on_processor:
        raise BackendError(f"backend 'cpu' runs on a processor, got {log_probs.device}")
    if backend == "reference":
        return ctc_reference(log_probs, targets, lengths, target_lengths, blank=blank)
    if backend == "torch" or not on_processor:
        return _torch_loss(log_probs, targets, lengths, target_lengths, blank)
    given = (log_probs, targets, lengths, target_lengths, blank)
    found: Tensor = _AlignmentSums.apply(*given)  # type: ignore[no-untyped-call]
    return found


def ctc_reference(
    log_probs: Float[Tensor, "B T C"],
    targets: Int[Tensor, "B L"],
    lengths: Int[Tensor, " B"],
    target_lengths: Int[Tensor, " B"],
    *,
    blank: int = 0,
) -> Float[Tensor, " B"]:
    """The definition of `ctc_loss`: the forward sum, a row and a step at a time."""
    losses = []
    for row, target, steps, size in zip(log_probs, targets, lengths, target_lengths, strict=True):
        labels = [blank]
        for label in target[: int(size)].tolist():
            labels += [label, blank]
        y = row[:, labels]  # (T, 2 L + 1)
        never = y.new_tensor(NEVER)
        alpha = [y[0, s] if s < 2 else never for s in range(len(labels))]
        for t in range(1, int(steps)):
            after = []
            for s, label in enumerate(labels):
                before = alpha[max(s - 1, 0) : s + 1]
                if s > 1 and label not in (blank, labels[s - 2]):
                    before = alpha[s - 2 : s + 1]
                after.append(torch.stack(before).logsumexp(dim=0) + y[t, s])
            alpha = after
        end = torch.stack(alpha[-2:]).logsumexp(dim=0)
        losses.append(torch.where(end < NEVER / 2, -torch.inf, end))
    return -torch.stack(losses)


def _torch_loss(
    log_probs: Tensor, targets: Tensor, lengths: Tensor, target_lengths: Tensor, blank: int
) -> Tensor:
    """Torch's own; where it is infinite, its gradient is 0 and not what infinities leave of it."""
    given = (log_probs.transpose(0, 1), targets, lengths, target_lengths, blank, "none")
    found: Tensor = functional.ctc_loss(*given, zero_infinity=True)
    if bool((found == 0).any()):  # certain, or impossible
        with torch.no_grad():
            exact = functional.ctc_loss(*given)
        found = torch.where(exact.isinf(), exact, found)
    return found


class _AlignmentSums(torch.autograd.Function):
    """The compiled sums; their posteriors are the gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        log_probs: Tensor,
        targets: Tensor,
        lengths: Tensor,
        target_lengths: Tensor,
        blank: int,
    ) -> Tensor:
        from seqloom.kernels.ctc import alignment_sums

        rows = log_probs.detach().double().contiguous()
        found, posteriors = rows.new_empty(len(rows)), torch.zeros_like(rows)
        whole = (targets.contiguous(), lengths, target_lengths)
        alignment_sums(
            rows.numpy(),
            *(each.long().numpy() for each in whole),
            blank,
            found.numpy(),
            posteriors.numpy(),
        )
        ctx.save_for_backward(posteriors.to(log_probs.dtype))
        return -found.to(log_probs.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (posteriors,) = ctx.saved_tensors
        return -gradient[:, None, None] * posteriors, None, None, None, None


def steps_needed(targets: Int[Tensor, "B L"], target_lengths: Int[Tensor, " B"]) -> Tensor:
    """How many steps labels take at least, (B,): one each, and one between two that are equal."""
    equal = targets[:, 1:] == targets[:, :-1]
    places = torch.arange(1, targets.shape[1], device=targets.device)
    return target_lengths + (equal & (places < target_lengths[:, None])).sum(dim=1)


def _check(
    log_probs: Tensor, targets: Tensor, lengths: Tensor, target_lengths: Tensor, blank: int
) -> None:
    if log_probs.ndim != 3 or not log_probs.is_floating_point() or 0 in log_probs.shape:
        raise ShapeError(
            "log_probs must be numbers of shape (B, T, C), none of them 0, got "
            f"{log_probs.dtype} of shape {tuple(log_probs.shape)}"
        )
    B, T, C = log_probs.shape
    if targets.ndim != 2 or len(targets) != B:
        raise ShapeError(f"targets must have shape ({B}, L), got {tuple(targets.shape)}")
    if not 0 <= blank < C:
        raise ShapeError(f"blank must lie in 0..{C - 1}, got {blank}")
    for name, each, low, high in (
        ("lengths", lengths, 1, T),
        ("target_lengths", target_lengths, 0, targets.shape[1]),
    ):
        if tuple(each.shape) != (B,):
            raise ShapeError(f"{name} must have shape ({B},), got {tuple(each.shape)}")
        if int(each.min()) < low or int(each.max()) > high:
            raise ShapeError(
                f"{name} must lie in {low}..{high}, got {int(each.min())} to {int(each.max())}"
            )
    real = torch.arange(targets.shape[1], device=targets.device) < target_lengths[:, None]
    used = targets[real]
    wrong = used[(used < 0) | (used >= C) | (used == blank)]
    if len(wrong):
        raise ShapeError(
            f"labels must lie in 0..{C - 1} and not be the blank {blank}, got {int(wrong[0])}"
        )
