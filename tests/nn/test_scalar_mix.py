"""Mixes of layers by hand, whatever is padded, and where they go in a network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.context import ContextMix, ContextOptions
from seqloom.nn.scalar_mix import ScalarMix


def layers(rows: int = 2, count: int = 3, steps: int = 4, size: int = 5) -> torch.Tensor:
    return torch.randn(rows, count, steps, size, dtype=torch.float64)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_the_mix_is_the_equation(layer_norm):
    torch.manual_seed(0)
    mix, h, lengths = ScalarMix(3, layer_norm=layer_norm).double(), layers(), torch.tensor([4, 2])
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.3, -1.0, 2.0]))
        mix.scale.fill_(1.7)
    found = mix(h, lengths)
    w = np.array([0.3, -1.0, 2.0])
    s = np.exp(w) / np.exp(w).sum()
    for b, n in enumerate(lengths.tolist()):
        expected = np.zeros((n, 5))
        for k in range(3):
            one = h[b, k, :n].numpy()
            if layer_norm:
                one = (one - one.mean()) / one.std()
            expected += 1.7 * s[k] * one
        assert_close(found[b, :n], torch.from_numpy(expected))
        assert not found[b, n:].any()
    assert mix.shares() == pytest.approx(s.tolist())


@pytest.mark.parametrize("layer_norm", [False, True])
def test_padding_and_other_rows_never_change_a_result(layer_norm):
    mix, h = ScalarMix(3, layer_norm=layer_norm).double(), layers()
    h[1, :, 2:] = torch.nan  # what lies on padding
    both = mix(h, torch.tensor([4, 2]))
    assert_close(both[1, :2], mix(h[1:, :, :2])[0])
    assert torch.autograd.gradcheck(mix, layers(1).requires_grad_())


def test_dropout_acts_in_training_only():
    mix, h = ScalarMix(3, dropout=0.5).double(), layers()
    assert not torch.equal(mix(h), mix(h))
    mix.eval()
    assert torch.equal(mix(h), mix(h))


def test_a_network_reads_layers_side_by_side_as_they_are():
    options = ContextOptions(size=5, num_layers=3, insert=("input", "output"), dropout=0.0)
    context, h = ContextMix(options).double(), layers()
    flat = h.transpose(1, 2).flatten(2)  # (B, T, L D)
    for place in ("input", "output"):
        assert_close(context(place, flat), h.mean(dim=1))
    assert context.shares() == {place: pytest.approx([1 / 3] * 3) for place in ("input", "output")}
    with pytest.raises(ShapeError, match="3 layers of 5 side by side, got width 14"):
        context("input", flat[..., :14])
    with pytest.raises(ShapeError, match="got words alone"):
        context("input", None)


def test_bad_settings_name_the_value():
    with pytest.raises(ConfigError, match="num_layers must be positive, got 0"):
        ScalarMix(0)
    with pytest.raises(ConfigError, match=r"dropout must lie in \[0, 1\), got 1"):
        ScalarMix(2, dropout=1.0)
    with pytest.raises(ShapeError, match=r"layers must be \(B, 3, T, D\), got \(2, 2, 4, 5\)"):
        ScalarMix(3)(layers(count=2))
    with pytest.raises(ConfigError, match="'middle'"):
        ContextOptions(size=2, num_layers=2, insert=("middle",))
    with pytest.raises(ConfigError, match=r"each place once, got \['input', 'input'\]"):
        ContextOptions(size=2, num_layers=2, insert=("input", "input"))
