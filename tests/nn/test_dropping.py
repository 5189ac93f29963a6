"""Dropped coordinates: which, how many, and how large the others become."""

from __future__ import annotations

import torch
from torch.nn import functional

from seqloom.nn.dropping import dropped


def test_one_mask_serves_all_steps_of_a_row() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 7, 200) + 10  # nowhere 0
    found = dropped(x, 0.25, training=True, variational=True)
    gone = found == 0
    assert torch.equal(gone, gone[:, :1].expand_as(gone))
    assert not torch.equal(gone[0, 0], gone[1, 0])
    assert abs(float(gone.float().mean()) - 0.25) < 0.02
    torch.testing.assert_close(found[~gone], (x / 0.75)[~gone])


def test_each_step_has_its_own_mask_otherwise() -> None:
    x = torch.ones(2, 5, 40)
    torch.manual_seed(3)
    found = dropped(x, 0.5, training=True)
    torch.manual_seed(3)
    assert torch.equal(found, functional.dropout(x, 0.5))
    assert not torch.equal(found[0, 0], found[0, 1])


def test_nothing_is_dropped_in_use() -> None:
    x = torch.randn(2, 3, 4)
    for variational in (False, True):
        assert torch.equal(dropped(x, 0.9, training=False, variational=variational), x)
