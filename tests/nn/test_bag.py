"""A bag is a sparse vector: the linear layer over it equals the dense one."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from seqloom.nn.bag import Bag, linear

# Three rows over five features; the second is empty.
BAG = Bag(
    torch.tensor([0, 3, 4, 1]),
    torch.tensor([1.0, 2.0, -0.5, 3.0], dtype=torch.float64),
    torch.tensor([0, 3, 3]),
)
DENSE = torch.tensor(
    [[1.0, 0, 0, 2.0, -0.5], [0, 0, 0, 0, 0], [0, 3.0, 0, 0, 0]], dtype=torch.float64
)


def weight():
    return torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_a_bag_equals_its_dense_vector():
    assert_close(linear(BAG, weight()), DENSE @ weight())
    assert_close(linear(DENSE, weight()), DENSE @ weight())


def test_gradients_are_those_of_the_dense_layer():
    ours, oracle = weight().requires_grad_(), weight().requires_grad_()
    linear(BAG, ours).square().sum().backward()
    (DENSE @ oracle).square().sum().backward()
    assert_close(ours.grad, oracle.grad)
    assert torch.autograd.gradcheck(lambda w: linear(BAG, w), weight().requires_grad_())


def test_weights_take_the_type_of_the_layer():
    assert linear(BAG, weight().float()).dtype == torch.float32
