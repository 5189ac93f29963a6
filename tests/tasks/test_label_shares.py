"""Labels with probabilities: learned as scikit-learn learns weighted copies of the examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from seqloom import Classifier
from seqloom.errors import ConfigError, InputError
from seqloom.tasks.class_scores import logistic_loss, softmax_loss
from seqloom.tasks.classifier_training import class_weights


def shares(count: int, names: list[str]) -> tuple[np.ndarray, list[dict[str, float]]]:
    table = np.random.default_rng(0).dirichlet(np.ones(len(names)), count)
    return table, [dict(zip(names, row.tolist(), strict=True)) for row in table]


@pytest.mark.parametrize("weights", [None, {"a": 3.0, "c": 0.5}])
def test_softmax_regression_is_that_of_weighted_copies(weights: Any) -> None:
    x = load_iris().data[::3]
    table, y = shares(len(x), ["a", "b", "c"])
    ours = Classifier("softmax", l2=0.5, class_weight=weights).fit(x, y)
    peer = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000, class_weight=weights)
    peer.fit(np.repeat(x, 3, axis=0), ["a", "b", "c"] * len(x), table.ravel())
    np.testing.assert_allclose(ours.predict_proba(x), peer.predict_proba(x), atol=2e-5)


def test_logistic_regression_is_that_of_weighted_copies() -> None:
    x = load_iris().data[::3, :2]
    table, y = shares(len(x), ["no", "yes"])
    ours = Classifier("logistic", l2=1.0).fit(x, y)
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    peer.fit(np.repeat(x, 2, axis=0), ["no", "yes"] * len(x), table.ravel())
    np.testing.assert_allclose(ours.predict_proba(x), peer.predict_proba(x), atol=2e-5)


@pytest.mark.parametrize("loss", [softmax_loss, logistic_loss])
def test_a_certain_label_costs_what_its_number_costs(loss: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 2, 1, 1, 0, 2])
    table = torch.nn.functional.one_hot(labels, 3).float()
    for weights in (None, torch.tensor([1.0, 2.0, 0.5])):
        torch.testing.assert_close(loss(scores, table, weights), loss(scores, labels, weights))


def test_a_network_says_what_it_was_told() -> None:
    texts = ["good film", "bad film", "long film"] * 16
    y: list[Any] = [{"+": 0.8, "-": 0.2}, "-", {"+": 0.5, "-": 0.5}] * 16
    training = {"epochs": 60, "optimizer": {"rate": 0.02}, "device": "cpu", "averaging": "none"}
    model = Classifier("cnn", num_maps=8, embed_size=8, dropout=0.0, valid_share=0,
                       training=training).fit(texts, y)  # fmt: skip
    assert model.classes_.tolist() == ["+", "-"]
    found = model.predict_proba(texts[:3])[:, 0]
    np.testing.assert_allclose(found, [0.8, 0.0, 0.5], atol=0.05)


def test_examples_that_validate_have_their_most_probable_label() -> None:
    x = np.array([[0.0], [1.0]] * 20)
    y = [{"a": 0.9, "b": 0.1}, {"a": 0.2, "b": 0.8}] * 20
    model = Classifier("mlp", hidden_sizes=(8,), training={"epochs": 40, "device": "cpu"})
    assert model.fit(x, y).metrics_["valid_accuracy"] == 1.0
    assert model.fit(x, y, valid=(x, y)).metrics_["valid_accuracy"] == 1.0


def test_arrays_and_columns_of_probabilities_are_those_of_lists() -> None:
    pandas = pytest.importorskip("pandas")
    y = [{"a": 0.7, "b": 0.3}, {"a": 0.2, "b": 0.8}]
    wanted = Classifier("softmax").fit(np.eye(2), y).predict_proba(np.eye(2))
    for given in (np.array(y), pandas.Series(y, index=[5, 9])):
        found = Classifier("softmax").fit(np.eye(2), given).predict_proba(np.eye(2))
        np.testing.assert_array_equal(found, wanted)


def test_balanced_weights_count_probabilities() -> None:
    table = np.array([[0.75, 0.25], [0.75, 0.25]])
    found = class_weights("balanced", np.array(["a", "b"]), table)
    np.testing.assert_allclose(found, [2 / (2 * 1.5), 2 / (2 * 0.5)])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"a": 0.5, "b": 0.4}, "add up to 1, got 0.9 for example 1"),
        ({"a": 1.5, "b": -0.5}, "between 0 and 1, got 1.5 for 'a' of example 1"),
        ({"a": float("nan"), "b": 1.0}, "between 0 and 1, got nan for 'a' of example 1"),
        ({"a": "much", "b": 1.0}, "must be a number, got 'much' for 'a' of example 1"),
        ({}, "add up to 1, got 0 for example 1"),
    ],
)
def test_what_is_no_probability_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Classifier("softmax").fit(np.eye(2), ["a", wrong])


def test_where_probabilities_have_no_place_they_are_refused() -> None:
    y = [{"a": 0.5, "b": 0.5}, "b"]
    with pytest.raises(ConfigError, match="perceptron"):
        Classifier("perceptron").fit(np.eye(2), y)
    with pytest.raises(InputError, match="certain"):
        Classifier("softmax").fit(np.eye(2), ["a", "b"]).evaluate(np.eye(2), y)
    with pytest.raises(InputError, match="one length"):
        Classifier("softmax").fit(np.eye(3), y)


@pytest.mark.parametrize("several", [{"a"}, ["a", "b"], ("a",), frozenset("a"), np.array(["a"])])
def test_several_labels_beside_probabilities_are_refused(several: Any) -> None:
    with pytest.raises(InputError, match="one label, got several of them in y"):
        Classifier("softmax").fit(np.eye(2), [{"a": 0.5, "b": 0.5}, several])
