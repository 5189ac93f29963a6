"""Output layers against torch, brute force over paths and samples, and distributions they learn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn import softmax
from seqloom.nn.softmax import FullSoftmax
from seqloom.nn.softmax_adaptive import AdaptiveSoftmax, usual_cutoffs
from seqloom.nn.softmax_sampled import NCESoftmax, Proposal, SampledSoftmax
from seqloom.nn.softmax_tree import HierarchicalSoftmax, huffman_children

N, D, V = 12, 8, 13
COUNTS = torch.tensor([0, 3, 50, 1, 7, 7, 20, 2, 0, 11, 5, 1, 1])

LAYERS: dict[str, Callable[[], Any]] = {
    "full": lambda: FullSoftmax(D, V),
    "adaptive": lambda: AdaptiveSoftmax(D, V, cutoffs=(4, 9)),
    "hierarchical": lambda: HierarchicalSoftmax(D, V),
    "sampled": lambda: SampledSoftmax(D, V, samples=5),
    "nce": lambda: NCESoftmax(D, V, samples=5, proposal="log-uniform"),
}


def made(name: str, seed: int = 0, counts: Tensor | None = COUNTS) -> Any:
    torch.manual_seed(seed)
    layer = LAYERS[name]().double()
    if counts is not None:
        layer.set_counts(counts)
    return layer


@pytest.fixture
def features() -> Tensor:
    return torch.randn(N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def targets() -> Tensor:
    return torch.arange(N) % V


# -- what all owe --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYERS)
def test_probabilities_sum_to_one_and_agree(name, features):
    layer = made(name).eval()
    whole = layer.log_probs(features)
    assert whole.shape == (N, V)
    assert_close(whole.exp().sum(dim=1), torch.ones(N, dtype=torch.float64))
    for word in range(V):
        wanted = torch.full((N,), word)
        assert_close(layer.target_log_probs(features, wanted), whole[:, word])
        assert_close(layer.loss(features, wanted), -whole[:, word].sum())


@pytest.mark.parametrize("name", LAYERS)
def test_slices_change_nothing(name, features, targets, monkeypatch):
    layer = made(name).eval()
    whole = layer.target_log_probs(features, targets)
    sizes = []
    own = softmax.rows_at_once
    monkeypatch.setattr(softmax, "SLICE", 2 * V)
    for module in ("softmax", "softmax_adaptive", "softmax_tree"):

        def counted(width: int) -> int:
            sizes.append(own(width))
            return sizes[-1]

        monkeypatch.setattr(f"seqloom.nn.{module}.rows_at_once", counted)
    with torch.no_grad():
        assert_close(layer.target_log_probs(features, targets), whole)
    assert sizes and max(sizes) < N


@pytest.mark.parametrize("name", LAYERS)
def test_no_rows_no_loss(name):
    layer, nothing = made(name), torch.zeros(0, D, dtype=torch.float64)
    for training in (True, False):
        layer.train(training)
        assert layer.loss(nothing, torch.zeros(0, dtype=torch.long)).item() == 0
    with torch.no_grad():
        assert layer.target_log_probs(nothing, torch.zeros(0, dtype=torch.long)).shape == (0,)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_match_finite_differences(name, features, targets):
    layer = made(name).eval()
    names = [key for key, _ in layer.named_parameters()]

    def loss(x: Tensor, *weights: Tensor) -> Tensor:
        given = dict(zip(names, weights, strict=True))
        found: Tensor = torch.func.functional_call(Losses(layer), prefixed(given), (x, targets))
        return found

    weights = [weight.detach().requires_grad_() for weight in layer.parameters()]
    assert torch.autograd.gradcheck(loss, (features.requires_grad_(), *weights))


class Losses(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, features: Tensor, targets: Tensor) -> Tensor:
        found: Tensor = self.layer.loss(features, targets)
        return found


def prefixed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"layer.{name}": weight for name, weight in weights.items()}


@pytest.mark.parametrize("name", LAYERS)
def test_a_loaded_layer_is_the_same(name, features, targets):
    layer, other = made(name), made(name, seed=9, counts=None)
    other.log_probs(features)  # whatever is kept for the next time must be forgotten
    other.loss(features, targets)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.log_probs(features), layer.log_probs(features))
    losses = []
    for each in (layer, other):
        torch.manual_seed(3)
        losses.append(each.train().loss(features, targets))
    assert torch.equal(losses[0], losses[1])


@pytest.mark.parametrize("name", LAYERS)
def test_half_precision_gives_probabilities_in_full(name, features, targets):
    layer = made(name).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = layer.log_probs(features.bfloat16())
        assert found.dtype == torch.float32
        assert_close(found.exp().sum(dim=1), torch.ones(N))
        for training in (True, False):
            layer.train(training)
            assert layer.loss(features.bfloat16(), targets).dtype == torch.float32


@pytest.mark.parametrize("name", ["adaptive", "hierarchical", "sampled", "nce"])
def test_counts_of_another_vocabulary_are_refused(name):
    with pytest.raises(ShapeError, match=r"13 counts, one a word, got \(5,\)"):
        made(name).set_counts(torch.zeros(5, dtype=torch.long))


@pytest.mark.parametrize("name", LAYERS)
def test_tied_weights_are_one_tensor_or_refused(name):
    layer, embedding = made(name), nn.Embedding(V, D)
    if name in ("adaptive", "hierarchical"):
        with pytest.raises(ConfigError, match=rf"cannot be tied, got weights of Embedding\({V}"):
            layer.tie(embedding)
    else:
        layer.tie(embedding)
        assert layer.weight is embedding.weight


# -- full ----------------------------------------------------------------------------------------


def test_the_full_softmax_is_a_linear_layer_and_cross_entropy(features, targets):
    layer = made("full")
    oracle = nn.Linear(D, V).double()
    layer.load_state_dict(oracle.state_dict())
    assert_close(layer.log_probs(features), oracle(features).log_softmax(dim=-1))
    expected = functional.cross_entropy(oracle(features), targets, reduction="sum")
    assert_close(layer.loss(features, targets), expected)


def test_the_full_softmax_begins_as_a_linear_layer():
    torch.manual_seed(5)
    oracle = nn.Linear(D, V)
    torch.manual_seed(5)
    layer = FullSoftmax(D, V)
    assert_close(dict(layer.state_dict()), dict(oracle.state_dict()))


# -- adaptive ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cutoffs", [(4, 9), (1,), (12,), (2, 3, 5, 8)])
@pytest.mark.parametrize("counted", [False, True])
def test_the_adaptive_softmax_is_torchs(cutoffs, counted, features, targets):
    oracle = nn.AdaptiveLogSoftmaxWithLoss(D, V, cutoffs, div_value=1.5).double()
    layer = AdaptiveSoftmax(D, V, cutoffs=cutoffs, div_value=1.5).double()
    layer.load_state_dict({**oracle.state_dict(), "counts": layer.counts})
    places = list(range(V))
    if counted:
        layer.set_counts(COUNTS)
        order = sorted(range(V), key=lambda word: (-COUNTS[word].item(), word))
        places = [order.index(word) for word in range(V)]
    theirs = oracle.log_prob(features)[:, places]
    assert_close(layer.log_probs(features), theirs)
    mine, by_torch = features.clone().requires_grad_(), features.clone().requires_grad_()
    loss = layer.loss(mine, targets)
    loss.backward()
    expected = oracle(by_torch, torch.tensor(places)[targets]).loss * N
    expected.backward()
    assert_close(loss, expected)
    assert_close(mine.grad, by_torch.grad)
    for (name, weight), other in zip(layer.named_parameters(), oracle.parameters(), strict=True):
        assert_close(weight.grad, other.grad, msg=name)


def test_usual_cutoffs_leave_words_behind_them():
    assert usual_cutoffs(267_735) == (2000, 10000, 50000)
    assert usual_cutoffs(33_278) == (2000, 10000)
    assert usual_cutoffs(10_000) == (2000,)
    assert usual_cutoffs(100) == (25,)
    assert usual_cutoffs(3) == ()
    assert AdaptiveSoftmax(D, 3).log_probs(torch.zeros(1, D)).exp().tolist()[0] == pytest.approx(
        [1 / 3] * 3
    )


@pytest.mark.parametrize("cutoffs", [(5, 4), (4, 4), (0, 4), (4, 13), (-2,)])
def test_impossible_cutoffs_are_refused(cutoffs):
    with pytest.raises(ConfigError, match=rf"13 words.*got \[{cutoffs[0]}"):
        AdaptiveSoftmax(D, V, cutoffs=cutoffs)


def test_a_width_that_grows_without_bound_is_refused():
    with pytest.raises(ConfigError, match="div_value must be positive, got 0"):
        AdaptiveSoftmax(D, V, div_value=0.0)


# -- hierarchical --------------------------------------------------------------------------------


def least_cost(counts: list[int]) -> int:
    """The sum of count times length of the best code, by merging the two rarest again and again."""
    cost, left = 0, sorted(counts)
    while len(left) > 1:
        merged = left[0] + left[1]
        cost, left = cost + merged, sorted([*left[2:], merged])
    return cost


@pytest.mark.parametrize(
    "counts", [COUNTS.tolist(), [1] * 8, [1, 1, 2, 3, 5, 8, 13, 21], [0, 0, 0], [4, 4]]
)
def test_the_tree_is_one_of_least_cost(counts):
    layer = HierarchicalSoftmax(D, len(counts))
    layer.set_counts(torch.tensor(counts))
    tree = layer.tree()
    ways = []
    for begin, end in itertools.pairwise(tree.starts.tolist()):
        ways.append(list(zip(tree.nodes[begin:end].tolist(), tree.signs[begin:end], strict=True)))
    lengths = [len(way) for way in ways]
    assert sum(c * n for c, n in zip(counts, lengths, strict=True)) == least_cost(counts)
    assert sum(2.0**-n for n in lengths) == 1  # Kraft: a full tree
    turns = {tuple(float(sign) for _, sign in way) for way in ways}
    assert len(turns) == len(counts)  # every word has a way of its own
    # A node is the same for all words that share the turns up to it, and for no others.
    prefixes = {
        (node, tuple(float(sign) for _, sign in way[:i]))
        for way in ways
        for i, (node, _) in enumerate(way)
    }
    assert sorted(node for node, _ in prefixes) == list(range(len(counts) - 1))


def test_probabilities_are_products_along_the_way(features):
    layer = made("hierarchical")
    children = huffman_children(COUNTS.tolist())
    whole, tree = layer.log_probs(features).exp(), layer.tree()
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    # The nodes by number, as the ways name them: the root first, then level by level.
    numbers, queue = {}, [V + len(children) - 1]
    for node in queue:
        numbers[node] = len(numbers)
        queue += [child for child in children[node - V] if child >= V]

    def visit(node: int, chance: np.ndarray) -> None:
        if node < V:
            np.testing.assert_allclose(whole[:, node].detach().numpy(), chance, rtol=1e-9)
            return
        score = features.numpy() @ weight[numbers[node]] + bias[numbers[node]]
        left = 1 / (1 + np.exp(-score))
        visit(children[node - V][0], chance * left)
        visit(children[node - V][1], chance * (1 - left))

    visit(V + len(children) - 1, np.ones(N))
    assert len(tree.nodes) == sum(tree.starts.diff().tolist())


def test_a_tree_of_one_word_is_certain():
    layer = HierarchicalSoftmax(D, 1)
    assert layer.log_probs(torch.zeros(2, D)).tolist() == [[0.0], [0.0]]
    assert layer.loss(torch.zeros(2, D), torch.tensor([0, 0])).item() == 0


# -- sampling ------------------------------------------------------------------------------------


def test_proposals_are_what_they_say():
    unigram, zipf = Proposal("unigram", V), Proposal("log-uniform", V)
    for each in (unigram, zipf):
        assert each.log_q().exp().sum().item() == pytest.approx(1)
        each.set_counts(COUNTS)
        assert each.log_q().exp().sum().item() == pytest.approx(1)
    total = sum(count + 1 for count in COUNTS.tolist())
    for word, count in enumerate(COUNTS.tolist()):
        assert unigram.log_q()[word].item() == pytest.approx(math.log((count + 1) / total))
        rank = sorted(range(V), key=lambda w: (-COUNTS[w].item(), w)).index(word)
        expected = math.log((rank + 2) / (rank + 1)) / math.log(V + 1)
        assert zipf.log_q()[word].exp().item() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["unigram", "log-uniform"])
def test_draws_follow_the_proposal(name):
    torch.manual_seed(0)
    proposal = Proposal(name, V)
    proposal.set_counts(COUNTS)
    drawn, size = proposal.draw(100_000), 100_000
    q = proposal.log_q().exp()
    found = torch.bincount(drawn, minlength=V) / size
    assert ((found - q).abs() < 5 * (q * (1 - q) / size).sqrt()).all()


def test_an_unknown_proposal_and_no_samples_are_refused():
    with pytest.raises(ConfigError, match="'unigramm'; did you mean 'unigram'"):
        Proposal("unigramm", V)  # type: ignore[arg-type]
    for layer in (SampledSoftmax, NCESoftmax):
        with pytest.raises(ConfigError, match="samples must be at least 1, got 0"):
            layer(D, V, samples=0)


def by_hand(layer: Any, features: Tensor) -> tuple[Any, Any]:
    """Scores and q, with numpy, for both formulas."""
    scores = features.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    q = layer.proposal.log_q().exp().numpy()
    return scores, q


@pytest.mark.parametrize("name", ["sampled", "nce"])
def test_training_losses_are_the_equations(name, features, targets):
    layer = made(name).train()
    torch.manual_seed(4)
    drawn = layer.proposal.draw(5).tolist()
    scores, q = by_hand(layer, features)
    expected = 0.0
    for row, word in enumerate(targets.tolist()):
        if name == "sampled":
            z = sum(math.exp(scores[row, v]) / q[v] for v in [word, *drawn]) / 6
            expected += math.log(z) - scores[row, word]
            continue
        noise = 5 * q
        expected -= math.log(1 / (1 + noise[word] / math.exp(scores[row, word])))
        for v in drawn:
            expected -= math.log(1 - 1 / (1 + noise[v] / math.exp(scores[row, v])))
    torch.manual_seed(4)
    assert layer.loss(features, targets).item() == pytest.approx(expected)


@pytest.mark.parametrize("proposal", ["unigram", "log-uniform"])
@pytest.mark.parametrize("kind", [SampledSoftmax, NCESoftmax])
def test_the_optimum_is_the_true_distribution(kind, proposal):
    """Learned from draws of a distribution that is not the proposal's; the exact softmax finds it.

    Without the correction by log q it would not: with samples from a skewed q the frequent words
    would come out too rare.
    """
    torch.manual_seed(0)
    words = 6
    truth = torch.tensor([0.05, 0.3, 0.1, 0.4, 0.05, 0.1])
    layer = kind(1, words, samples=4, proposal=proposal)
    layer.set_counts(torch.tensor([900, 10, 300, 40, 100, 0]))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=1500)
    x, mean, taken = torch.ones(500, 1), torch.zeros(words), 0
    for update in range(1500):
        optimizer.zero_grad()
        targets = torch.multinomial(truth, len(x), replacement=True)
        (layer.loss(x, targets) / len(x)).backward()
        optimizer.step()
        schedule.step()
        if update >= 1000:
            mean, taken = mean + layer.eval().log_probs(x[:1])[0].detach(), taken + 1
            layer.train()
    found = (mean / taken).softmax(dim=0)
    assert_close(found, truth, atol=0.02, rtol=0.08)
    if kind is NCESoftmax:  # it learns to be normalized
        total = (layer.weight[:, 0] + layer.bias).exp().sum().item()
        assert total == pytest.approx(1, rel=0.2)


@pytest.mark.parametrize("name", ["sampled", "nce"])
def test_training_begins_with_the_proposal(name):
    layer = made(name)
    found = layer.log_probs(torch.zeros(1, D, dtype=torch.float64))[0]
    assert_close(found, layer.proposal.log_q())


def test_a_sampled_loss_nears_the_cross_entropy(features, targets):
    torch.manual_seed(0)
    layer = SampledSoftmax(D, V, samples=50_000).double()
    layer.set_counts(COUNTS)
    exact = layer.eval().loss(features, targets).item()
    assert layer.train().loss(features, targets).item() == pytest.approx(exact, rel=0.01)
