"""What every model owes its users; a new one is put through all of it by one `LMCase`.

A test module parametrizes over its cases and over `LM_CONTRACTS`, or over `COUNTED_CONTRACTS` for
a model that is counted and not trained (`CountedCase`). The oracle of a case is written in the test
from the paper's equation, with numpy and a visible loop.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.testing import assert_close

from gradients import assert_gradients_match
from seqloom import LanguageModel
from seqloom.architectures import find_architecture, load_config_class, load_model_class
from seqloom.errors import ConfigError, ShapeError

V = 11  # words known to the models of the contracts
LENGTHS = [5, 1, 3, 4]

Weights = dict[str, NDArray[np.float64]]
Oracle = Callable[[Weights, list[int], Any], NDArray[np.float64]]
"""Takes weights, ids and the configuration; returns the logits after each id, (T, V)."""


@dataclass(frozen=True)
class LMCase:
    """One language model to put through the contracts: its name, options and oracle."""

    arch: str
    oracle: Oracle
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.arch, *(f"{k}={v}" for k, v in self.options.items())])

    def model(self, seed: int = 0, **changes: Any) -> nn.Module:
        entry = find_architecture("lm", self.arch)
        values = {**self.options, **entry.preset, "vocab_size": V, **changes}
        torch.manual_seed(seed)
        model: nn.Module = load_model_class(entry)(load_config_class(entry)(**values))
        return model.double().eval()


class Scored(nn.Module):
    """A model with its output layer: the log-probability of every word after each id."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *given: Any) -> Tensor:
        features = self.model(*given).features
        return self.model.output.log_probs(features.flatten(0, 1)).unflatten(0, features.shape[:2])


def log_probs(model: nn.Module, *given: Any) -> Tensor:
    found: Tensor = Scored(model)(*given)
    return found


def some_ids(rows: int, steps: int, seed: int = 1) -> Tensor:
    return torch.randint(V, (rows, steps), generator=torch.Generator().manual_seed(seed))


def weights_of(model: nn.Module) -> Weights:
    return {name: weight.detach().numpy() for name, weight in model.named_parameters()}


def matches_its_oracle(case: LMCase, tmp_path: Path) -> None:
    model, ids = case.model(), some_ids(3, 6)
    for row, line in zip(ids.tolist(), log_probs(model, ids), strict=True):
        expected = torch.from_numpy(case.oracle(weights_of(model), row, model.config))
        assert_close(line, expected - expected.exp().sum(dim=-1, keepdim=True).log())


def the_output_layer_agrees_with_itself(case: LMCase, tmp_path: Path) -> None:
    model, ids = case.model(), some_ids(3, 6)
    features = model(ids).features.flatten(0, 1)  # (N, D)
    targets = some_ids(1, len(features), seed=8)[0]
    whole = model.output.log_probs(features)
    assert_close(whole.exp().sum(dim=1), torch.ones(len(features), dtype=torch.float64))
    own = whole[torch.arange(len(targets)), targets]
    assert_close(model.output.target_log_probs(features, targets), own)
    assert_close(model.output.loss(features, targets), -own.sum())


def padding_never_changes_a_result(case: LMCase, tmp_path: Path) -> None:
    model, ids = case.model(), some_ids(len(LENGTHS), max(LENGTHS))
    before = model(some_ids(len(LENGTHS), 2, seed=9)).state
    for start in (None, before):
        whole = model(ids, torch.tensor(LENGTHS), start)
        for b, n in enumerate(LENGTHS):
            own = None if start is None else type(start)(*(part[b : b + 1] for part in start))
            alone = model(ids[b : b + 1, :n], None, own)
            assert_close(whole.features[b, :n], alone.features[0])
            for part, expected in zip(whole.state, alone.state, strict=True):
                assert_close(part[b], expected[0])
        rubbish = ids.clone()
        for b, n in enumerate(LENGTHS):
            rubbish[b, n:] = V - 1
        again = model(rubbish, torch.tensor(LENGTHS), start)
        for part, expected in zip(again.state, whole.state, strict=True):
            assert torch.equal(part, expected)


def a_row_of_length_none_keeps_its_state(case: LMCase, tmp_path: Path) -> None:
    model = case.model()
    before = model(some_ids(2, 3)).state
    after = model(some_ids(2, 4, seed=5), torch.tensor([4, 0]), before).state
    for old, new in zip(before, after, strict=True):
        assert torch.equal(new[1], old[1])
        assert new.shape == old.shape


def a_batch_of_one_and_a_step_of_one(case: LMCase, tmp_path: Path) -> None:
    model = case.model()
    output = model(some_ids(1, 1))
    assert log_probs(model, some_ids(1, 1)).shape == (1, 1, V)
    assert_close(output.features, model(some_ids(1, 1), torch.tensor([1])).features)


def whole_equals_step_by_step(case: LMCase, tmp_path: Path) -> None:
    model, ids = case.model(), some_ids(3, 7)
    whole, state, steps = model(ids), model.initial_state(3), []
    for t in range(7):
        output = model(ids[:, t : t + 1], None, state)
        state = output.state
        steps.append(output.features)
    assert_close(torch.cat(steps, dim=1), whole.features)
    for part, expected in zip(state, whole.state, strict=True):
        assert_close(part, expected)


def no_state_is_the_initial_state(case: LMCase, tmp_path: Path) -> None:
    model, ids = case.model(), some_ids(2, 3)
    assert torch.equal(model(ids).features, model(ids, None, model.initial_state(2)).features)


def same_seed_same_result(case: LMCase, tmp_path: Path) -> None:
    first, second, other = case.model(3), case.model(3), case.model(4)
    ids = some_ids(2, 4)
    assert torch.equal(log_probs(first, ids), log_probs(second, ids))
    assert not torch.equal(log_probs(first, ids), log_probs(other, ids))
    assert torch.equal(log_probs(first, ids), log_probs(first, ids))  # no dropout in evaluation


def dropout_acts_in_training_only(case: LMCase, tmp_path: Path) -> None:
    if not hasattr(case.model().config, "dropout"):
        pytest.skip(f"{case.arch} has no dropout")
    model, ids = case.model(dropout=0.5), some_ids(2, 4)
    assert torch.equal(model(ids).features, model(ids).features)
    model.train()
    assert not torch.equal(model(ids).features, model(ids).features)


def every_parameter_gets_a_gradient(case: LMCase, tmp_path: Path) -> None:
    model, ids = case.model().train(), torch.arange(V).repeat(2, 2)
    log_probs(model, ids).square().sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().sum() > 0, name


def gradients_match_finite_differences(case: LMCase, tmp_path: Path) -> None:
    model, ids, lengths = Scored(case.model()), some_ids(2, 3), torch.tensor([3, 2])

    def scores(*_: Tensor) -> tuple[Tensor, Tensor]:
        found = model(ids, lengths)
        return found[0, 2], found[1, :2]

    assert_gradients_match(scores, list(model.parameters()))


def bad_input_is_refused(case: LMCase, tmp_path: Path) -> None:
    model, ids = case.model(), some_ids(2, 3)
    with pytest.raises(ShapeError, match=r"ids must have shape \(B, T\).*got \(3,\)"):
        model(ids[0])
    with pytest.raises(ShapeError, match=r"T at least 1, got \(2, 0\)"):
        model(ids[:, :0])
    with pytest.raises(ShapeError, match=r"lengths must have shape \(2,\).*got \(3,\)"):
        model(ids, torch.tensor([1, 2, 3]))
    with pytest.raises(ShapeError, match=r"must have 2 rows.*got 3; start from initial_state\(2\)"):
        model(ids, None, model.initial_state(3))


def saving_and_loading_changes_nothing(case: LMCase, tmp_path: Path) -> None:
    options = {k: v for k, v in case.options.items() if k != "vocab_size"}
    texts = ["the cat sat", "a dog sat on the mat", "the dog ran"] * 3
    model = LanguageModel(case.arch, window=4, training=QUICK, **options).fit(texts)
    model.save(tmp_path / "model")
    loaded = LanguageModel.load(tmp_path / "model")
    assert loaded.score(texts) == model.score(texts)  # bit for bit
    assert loaded.evaluate(texts) == model.evaluate(texts)
    assert loaded.generate(seed=5) == model.generate(seed=5)
    assert loaded.get_params()["arch"] == case.arch
    again = loaded.save(tmp_path / "again")
    for name in ("weights.safetensors", "vocabulary.json", "seqloom.json", "README.md"):
        assert (again / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


QUICK = {"epochs": 1, "batch": {"batch_size": 2}, "device": "cpu"}
LM_CONTRACTS = (
    matches_its_oracle,
    the_output_layer_agrees_with_itself,
    padding_never_changes_a_result,
    a_row_of_length_none_keeps_its_state,
    a_batch_of_one_and_a_step_of_one,
    whole_equals_step_by_step,
    no_state_is_the_initial_state,
    same_seed_same_result,
    dropout_acts_in_training_only,
    every_parameter_gets_a_gradient,
    gradients_match_finite_differences,
    bad_input_is_refused,
    saving_and_loading_changes_nothing,
)


# -- counted language models ---------------------------------------------------------------------

COUNTED_TEXTS = [
    "the cat sat on the mat",
    "a dog sat on the mat",
    "the dog ran to the cat",
    "a cat ran",
    "the old dog sat",
    "a bird",
]
CountedOracle = Callable[[list[list[str]], list[str], int], list[float]]
"""Takes the training sentences, a sentence and the order; returns the probability of each word and
of the end. A word that is not in the training sentences is "<unk>" in both."""


@dataclass(frozen=True)
class CountedCase:
    """One counted language model: its name, options and, if its equation is short, an oracle."""

    arch: str
    options: Mapping[str, Any] = field(default_factory=dict)
    oracle: CountedOracle | None = None

    def __str__(self) -> str:
        return "-".join([self.arch, *(f"{k}={v}" for k, v in self.options.items())])

    def fit(self, **settings: Any) -> LanguageModel:
        return LanguageModel(self.arch, **settings, **self.options).fit(COUNTED_TEXTS)


ASKED = ["the cat ran", "a zebra sat on the mat", "", "mat mat", "zebra", "the old bird"]


def counted_matches_its_oracle(case: CountedCase, tmp_path: Path) -> None:
    if case.oracle is None:
        pytest.skip("tests/ngram has the oracles of all smoothings")
    model = case.fit()
    known = {word for text in COUNTED_TEXTS for word in text.split()}
    train = [text.split() for text in COUNTED_TEXTS]
    for text in ASKED:
        words = [word if word in known else "<unk>" for word in text.split()]
        expected = case.oracle(train, words, case.options["order"])
        np.testing.assert_allclose(np.exp(model.score(text).log_probs), expected, rtol=1e-5)


def next_words_are_a_distribution_that_scores_agree_with(case: CountedCase, tmp_path: Path) -> None:
    model = case.fit()
    for prompt in ("", "the", "the cat", "zebra", "a dog sat on the"):
        chances = dict(model.next(prompt, k=100))
        assert len(chances) == len(model.vocabulary_) - 2  # neither <s> nor <pad>
        assert math.fsum(chances.values()) == pytest.approx(1, abs=1e-6)
        for word in ("cat", "mat", "the"):
            scored = model.score(f"{prompt} {word}").log_probs[-2]
            assert chances[word] == pytest.approx(math.exp(scored), rel=1e-5)
        assert chances["</s>"] == pytest.approx(math.exp(model.score(prompt).log_probs[-1]))


def evaluation_is_the_sum_of_the_scores(case: CountedCase, tmp_path: Path) -> None:
    model = case.fit()
    found, scores = model.evaluate(ASKED), model.score(ASKED)
    tokens = sum(len(score.words) for score in scores)
    loss = -math.fsum(score.total for score in scores) / tokens
    assert found["tokens"] == tokens
    assert found["loss"] == pytest.approx(loss)
    assert found["perplexity"] == pytest.approx(math.exp(loss))
    assert found["unknown"] == pytest.approx(2 / tokens)


def a_batch_scores_as_each_alone(case: CountedCase, tmp_path: Path) -> None:
    model = case.fit()
    texts = ASKED * 15  # more than one piece of 64
    assert model.score(texts) == [model.score(text) for text in texts]
    assert model.score([]) == []


def same_text_same_model(case: CountedCase, tmp_path: Path) -> None:
    first, second = case.fit(), case.fit()
    assert first.score(ASKED) == second.score(ASKED)
    stores = [
        (m.save(tmp_path / str(i)) / "model.ngram").read_bytes()
        for i, m in enumerate((first, second))
    ]
    assert stores[0] == stores[1]


def counted_text_is_drawn_by_the_seed(case: CountedCase, tmp_path: Path) -> None:
    model = case.fit()
    drawn = [model.generate("the", seed=seed) for seed in range(20)]
    assert drawn == [model.generate("the", seed=seed) for seed in range(20)]
    assert len(set(drawn)) > 1
    assert not any("<" in text for text in drawn)
    best = next(word for word, _ in model.next("the", k=3) if word != "<unk>")
    likeliest = "the" if best == "</s>" else f"the {best}"
    for options in ({"temperature": 0}, {"top_k": 1}):
        assert model.generate("the", max_words=1, **options) == likeliest


def bad_options_are_refused(case: CountedCase, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'ordr'; did you mean 'order'"):
        LanguageModel(case.arch, ordr=3)
    with pytest.raises(ConfigError, match="'smoothing' must be text, got 5"):
        LanguageModel(case.arch, smoothing=5).fit(COUNTED_TEXTS)


def counted_saving_and_loading_changes_nothing(case: CountedCase, tmp_path: Path) -> None:
    model = case.fit()
    place = model.save(tmp_path / "model")
    loaded = LanguageModel.load(place)
    assert loaded.score(ASKED) == model.score(ASKED)  # bit for bit
    assert loaded.evaluate(ASKED) == model.evaluate(ASKED)
    assert loaded.generate(seed=5) == model.generate(seed=5)
    assert loaded.next("the") == model.next("the")
    assert loaded.get_params()["order"] == case.options["order"]
    again = loaded.save(tmp_path / "again")
    for name in ("model.ngram", "vocabulary.json", "seqloom.json", "README.md"):
        assert (again / name).read_bytes() == (place / name).read_bytes()
    shutil.rmtree(place)  # a model that is loaded does not need its files any more
    assert loaded.score(ASKED) == model.score(ASKED)
    assert LanguageModel.load(loaded.save(place)).score(ASKED) == model.score(ASKED)


COUNTED_CONTRACTS = (
    counted_matches_its_oracle,
    next_words_are_a_distribution_that_scores_agree_with,
    evaluation_is_the_sum_of_the_scores,
    a_batch_scores_as_each_alone,
    same_text_same_model,
    counted_text_is_drawn_by_the_seed,
    bad_options_are_refused,
    counted_saving_and_loading_changes_nothing,
)
