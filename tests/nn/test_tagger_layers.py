"""Characters, windows and tags one by one, against visible loops and torch's own layers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.characters import CharacterCNN, CharacterRNN
from seqloom.nn.crf_softmax import TagSoftmax
from seqloom.nn.windows import windows

LENGTHS = [5, 1, 3]


def some_words(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(1, 9, (3, 5), generator=torch.Generator().manual_seed(seed))
    return ids, torch.tensor(LENGTHS)


def test_filters_equal_a_visible_loop_and_padding_is_not_seen():
    torch.manual_seed(0)
    layer = CharacterCNN(9, 4, [(1, 2), (2, 3), (3, 2)]).double().eval()
    ids, lengths = some_words()
    found = layer(ids, lengths)
    vectors = layer.embedding.weight.detach().numpy()
    for word, n, row in zip(ids.tolist(), LENGTHS, found, strict=True):
        expected = []
        for width, filters in zip((1, 2, 3), layer.filters, strict=True):
            weight, bias = filters.weight.detach().numpy(), filters.bias.detach().numpy()
            best = np.full(len(bias), -np.inf)
            for i in range(n):
                around = range(i - (width - 1) // 2, i + width // 2 + 1)
                pieces = [vectors[word[k]] if 0 <= k < n else np.zeros(4) for k in around]
                best = np.maximum(best, weight @ np.concatenate(pieces) + bias)
            expected.append(best)
        assert_close(row, torch.from_numpy(np.tanh(np.concatenate(expected))))


def test_states_equal_those_of_torch_word_by_word():
    torch.manual_seed(0)
    layer = CharacterRNN(9, 4, 3).double().eval()
    ids, lengths = some_words()
    found = layer(ids, lengths)
    oracle = torch.nn.LSTM(4, 3, bidirectional=True, batch_first=True).double()
    oracle.load_state_dict(layer.rnn.state_dict())
    for word, n, row in zip(ids, LENGTHS, found, strict=True):
        _, (h, _) = oracle(layer.embedding(word[None, :n]))
        assert_close(row, torch.cat([h[0, 0], h[1, 0]]))


def test_windows_are_those_of_torch_unfold():
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    for width in (1, 2, 3, 5):
        padded = torch.nn.functional.pad(x, (0, 0, (width - 1) // 2, width // 2))
        expected = padded.unfold(1, width, 1).transpose(2, 3).flatten(2)
        assert torch.equal(windows(x, width), expected)


def test_tags_one_by_one_have_the_probabilities_of_a_softmax():
    torch.manual_seed(0)
    layer, scores = TagSoftmax(3), torch.randn(3, 4, 3, dtype=torch.float64)
    tags, lengths = torch.randint(3, (3, 4)), torch.tensor([4, 1, 3])
    loss, best = layer.loss(scores, tags, lengths), layer.best(scores, lengths, 3)
    shares = scores.softmax(dim=-1)
    for b, n in enumerate(lengths.tolist()):
        own = sum(shares[b, t, tags[b, t]].log() for t in range(n))
        assert_close(loss[b], -own)
        paths = {
            path: sum(shares[b, t, y].log().item() for t, y in enumerate(path))
            for path in itertools.product(range(3), repeat=n)
        }
        ranked = sorted(paths, key=paths.__getitem__, reverse=True)[:3]
        assert [tuple(row[:n].tolist()) for row in best.tags[b]] == ranked
        assert_close(best.scores[b], torch.tensor([paths[p] for p in ranked]).double())
        assert layer.decode(scores, lengths)[b].tolist() == [*ranked[0], *[0] * (4 - n)]
        assert_close(layer.marginals(scores, lengths)[b, :n], shares[b, :n])
        assert not layer.marginals(scores, lengths)[b, n:].any()


def test_refuses_what_does_not_fit():
    with pytest.raises(ConfigError, match="got"):
        CharacterCNN(9, 4, [])
    with pytest.raises(ConfigError, match="'gelu'"):
        CharacterCNN(9, 4, [(1, 1)], activation="gelu")
    with pytest.raises(ShapeError, match=r"got \(3, 5\) and \(2,\)"):
        CharacterCNN(9, 4, [(1, 1)])(some_words()[0], torch.tensor([1, 1]))
    with pytest.raises(ShapeError, match=r"got \(1, 2, 4\)"):
        TagSoftmax(3).decode(torch.zeros(1, 2, 4))
