"""Scores and states on a GPU decode as on the CPU."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch

from seqloom.decoding import Limits, beam_search, greedy, sample

V, STOP = 50, 3


class State(NamedTuple):
    before: torch.Tensor


def make(device):
    chance = torch.Generator().manual_seed(0)
    table = torch.randn(V, V, V, generator=chance, dtype=torch.float64).log_softmax(-1).to(device)

    def step(last, state):
        last = torch.from_numpy(last).to(device)
        return table[state.before, last], State(last)

    return step, State(torch.full((4,), STOP, device=device))


@pytest.mark.gpu
def test_a_gpu_decodes_as_the_cpu():
    rules = Limits(max_length=12, min_length=2, stop=STOP, forbidden=[0, 1], no_repeat=2)
    forced = [[], [5, 6], [7], []]
    found = []
    for device in ("cpu", "cuda"):
        step, state = make(device)
        searched = beam_search(step, state, [STOP] * 4, rules, beam=5, n_best=3, prefixes=forced)
        drawn = sample(step, state, [STOP] * 4, rules, seeds=range(4), top_p=0.8, prefixes=forced)
        likeliest = greedy(step, state, [STOP] * 4, rules, prefixes=forced)
        found.append(
            ([[h.ids for h in each] for each in searched], [each.ids for each in drawn], likeliest)
        )
    assert found[0] == found[1]
