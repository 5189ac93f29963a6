"""A recognizer learns labels that nobody aligned, reads them, and keeps what it learned."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from typer.testing import CliRunner

from seqloom import LanguageModel, Recognizer, load
from seqloom.cli import app
from seqloom.data.digits import digit_images, digit_strips
from seqloom.data.vector_sequences import read_vector_sequences
from seqloom.errors import ConfigError, DataError, InputError
from seqloom.metrics.alignment import edit_distance, error_rate
from seqloom.models.recognizer import Recognizer as Network
from seqloom.models.recognizer import RecognizerConfig
from seqloom.nn.ctc import ctc_loss
from seqloom.tasks.recognizer_reading import alignment_loss

QUICK = {"epochs": 25, "batch": {"batch_size": 8}, "device": "cpu", "optimizer": {"rate": 0.02}}


def marks(count, seed=0):
    """Each label is a bump of a random width in its own coordinate, after a gap."""
    draw = np.random.default_rng(seed)
    x, y = [], []
    for _ in range(count):
        labels = "".join(draw.choice(list("abc"), draw.integers(1, 4)))
        rows = []
        for label in labels:
            rows += [np.zeros(3)] * draw.integers(1, 3)
            rows += [np.eye(3)["abc".index(label)]] * draw.integers(1, 4)
        x.append(np.array(rows) + draw.normal(size=(len(rows), 3)) * 0.05)
        y.append(labels)
    return x, y


@pytest.fixture(scope="module")
def fitted():
    return Recognizer(hidden_size=12, training=QUICK).fit(*marks(80), valid=marks(20, 1))


def test_it_reads_what_it_never_saw(fitted):
    x, y = marks(40, 2)
    assert fitted.evaluate(x, y)["error_rate"] < 0.05
    assert fitted.evaluate(x, y, beam=8)["error_rate"] < 0.05
    assert fitted.labels_.tolist() == ["a", "b", "c"]
    assert fitted.metrics_["valid_error_rate"] < 0.05


def test_alone_or_together_a_sequence_is_read_the_same(fitted):
    x, _ = marks(12, 3)
    for beam in (None, 4):
        together = fitted.recognize(x, beam=beam)
        for one, found in zip(x, together, strict=True):
            alone = fitted.recognize([one], beam=beam)[0]
            assert alone.labels == found.labels
            assert alone.score == pytest.approx(found.score, abs=1e-4)


def test_the_score_is_that_of_the_loss(fitted):
    x, _ = marks(6, 4)
    for one, readings in zip(x, fitted.n_best(x, 3, beam=500), strict=True):
        rows = fitted.model_(torch.from_numpy(one).float()[None]).scores
        for found in readings:
            numbers = torch.tensor([["abc".index(label) + 1 for label in found.labels] or [1]])
            sizes = torch.tensor([len(found.labels)])
            loss = torch.nn.functional.ctc_loss(
                rows.transpose(0, 1), numbers, torch.tensor([len(one)]), sizes, reduction="none"
            )
            assert found.log_prob == pytest.approx(-loss.item(), abs=1e-3)


def test_a_language_model_has_its_say(fitted):
    language = LanguageModel("ngram", order=2, smoothing="witten-bell").fit(["a b", "b c", "a b c"])
    x, _ = marks(5, 5)
    readings = fitted.n_best(x, 4, language=language, weight=0.7, bonus=0.2)
    for found in (each for row in readings for each in row):
        said = language.score(" ".join(found.labels)).total
        expected = found.log_prob + 0.7 * said + 0.2 * len(found.labels)
        assert found.score == pytest.approx(expected, abs=1e-5)
    plain = [found.labels for found in fitted.recognize(x, beam=16)]
    silent = fitted.recognize(x, language=language, weight=0.0)
    assert [found.labels for found in silent] == plain


def test_saving_and_loading_changes_nothing(fitted, tmp_path):
    x, _ = marks(6, 6)
    loaded = load(fitted.save(tmp_path / "model"))
    assert isinstance(loaded, Recognizer)
    assert loaded.recognize(x, beam=4) == fitted.recognize(x, beam=4)
    assert loaded.get_params()["hidden_size"] == 12


def test_the_network_is_its_equation_and_padding_changes_nothing():
    torch.manual_seed(0)
    model = Network(RecognizerConfig(input_size=3, output_size=4, hidden_size=5)).double().eval()
    x, lengths = torch.randn(3, 7, 3, dtype=torch.float64), [7, 1, 4]
    whole = model(x, torch.tensor(lengths)).scores
    oracle = torch.nn.LSTM(3, 5, bidirectional=True, batch_first=True).double()
    oracle.load_state_dict(model.rnn.state_dict())
    for b, n in enumerate(lengths):
        y = oracle(x[b : b + 1, :n])[0] @ model.output.weight.T + model.output.bias
        assert_close(whole[b, :n], torch.log_softmax(y, -1)[0])
        assert whole[b, n:, 0].exp().sum() == 7 - n and not whole[b, n:, 1:].exp().any()
    targets = torch.tensor([[1, 2, -1], [3, -1, -1], [-1, -1, -1]])
    sizes = torch.tensor([2, 1, 0])
    exact = ctc_loss(whole, targets, torch.tensor(lengths), sizes, backend="torch").sum()
    assert_close(alignment_loss(whole, targets), exact)


def test_every_parameter_gets_a_gradient():
    torch.manual_seed(0)
    model = Network(RecognizerConfig(input_size=3, output_size=4, hidden_size=2, cell="gru"))
    scores = model(torch.randn(2, 6, 3), torch.tensor([6, 4])).scores
    alignment_loss(scores, torch.tensor([[1, 2], [3, -1]])).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().sum() > 0, name


def test_the_command_line_trains_and_reads(tmp_path):
    path, out = tmp_path / "marks.jsonl", str(tmp_path / "model")
    rows = [{"x": x.tolist(), "labels": y} for x, y in zip(*marks(30), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = ["model.hidden_size=8", "training.epochs=30", "training.batch.batch_size=4"]
    settings += ["training.optimizer.rate=0.02", "training.device=cpu"]
    chosen = [word for setting in settings for word in ("--set", setting)]
    what = ["--task", "recognize", "--arch", "ctc", "--train", str(path), "--out", out]
    trained = CliRunner().invoke(app, ["train", *what, *chosen, "--json"])
    assert trained.exit_code == 0, trained.output
    found = CliRunner().invoke(app, ["evaluate", out, str(path), "--json"])
    metrics = {row["what"]: row["value"] for row in json.loads(found.stdout)}
    assert metrics["error_rate"] < 0.1 and metrics["examples"] == 30
    read = CliRunner().invoke(app, ["predict", out, str(path), "--json"])
    lines = [json.loads(line)["labels"] for line in read.stdout.splitlines()]
    assert lines == load(out).predict([row["x"] for row in rows])
    path.write_text("[1]\n")
    refused = CliRunner().invoke(app, ["predict", out, str(path)])
    assert isinstance(refused.exception, DataError) and "'[1]'" in str(refused.exception)
    row = json.dumps(rows[0])
    for wrong in ("[1]", "[" * 200_000, '{"x": [[1], [2, 3]]}', '{"x": "abc"}'):
        path.write_text(f"{row}\n\n\n{wrong}\n")
        refused = CliRunner().invoke(app, ["predict", out, str(path)])
        assert isinstance(refused.exception, DataError)
        assert str(refused.exception).startswith(f"{path}:4: ")


def test_bad_input_is_refused(fitted):
    x, y = marks(3)
    model = Recognizer(hidden_size=2, valid_share=0, training={"epochs": 1})
    with pytest.raises(InputError, match=r"step a label.*at least 3 for example 0.*got 2"):
        model.fit([np.zeros((2, 2)), np.zeros((2, 2))], ["aa", "b"])
    with pytest.raises(InputError, match="NaN"):
        model.fit([np.full((3, 2), np.nan)], ["a"])
    with pytest.raises(InputError, match="inconsistent numbers of samples: 3 and 2"):
        model.fit(x, y[:2])
    with pytest.raises(InputError, match="got 7 for example 1"):
        model.fit(x[:2], ["a", 7])
    with pytest.raises(InputError, match="at least one label, got none"):
        model.fit(x[:2], ["", ""])
    with pytest.raises(InputError, match="one type, got int, str"):
        model.fit(x[:2], [["a"], [1]])
    with pytest.raises(InputError, match=r"validation data must occur.*got 'z'"):
        model.fit(x, y, valid=(x, ["z"] * 3))
    with pytest.raises(InputError, match="got none"):
        fitted.predict([])
    with pytest.raises(InputError, match="sequences of vectors"):
        fitted.predict(np.zeros((3, 3)))
    with pytest.raises(InputError, match=r"2 features in sequence 0.*expecting 3"):
        fitted.predict([np.zeros((4, 2))])
    with pytest.raises(ConfigError, match=r"patience.*need validation data"):
        Recognizer(valid_share=0, training={"patience": 2}).fit(x, y)
    with pytest.raises(ConfigError, match=r"valid_share must lie in \[0, 1\), got 2"):
        Recognizer(valid_share=2).fit(x, y)
    for unknown, told in (("ahXX", "'ahXX'"), ("a\0", r"'a\\x00'"), (1.7, "1.7")):
        with pytest.raises(InputError, match=rf"validation data must occur.*got {told}"):
            model.fit(x, [["ah", "a"]] * 3, valid=(x, [[unknown]] * 3))
    for unknown in (1.7, "x"):
        with pytest.raises(InputError, match=f"validation data must occur.*got {unknown!r}"):
            model.fit(x, [[1, 2]] * 3, valid=(x, [[unknown]] * 3))
    with pytest.raises(InputError, match="names or numbers, got None for example 0"):
        model.fit(x, [["a", "b"]] * 3, valid=(x, [[None]] * 3))
    with pytest.raises(InputError, match=r"an array can hold, got 'a\\x00'"):
        model.fit(x, [["a", "a\0"]] * 3)
    for beam in ("4", 1.5, 0):
        with pytest.raises(ConfigError, match="beam must be a whole number of at least 1"):
            fitted.recognize(x, beam=beam)
    with pytest.raises(ConfigError, match="n must be a whole number of at least 1, got '3'"):
        fitted.n_best(x, "3")
    backwards = LanguageModel("ngram", order=2, reverse=True, smoothing="witten-bell")
    with pytest.raises(ConfigError, match="reverse=True"):
        fitted.recognize(x, language=backwards.fit(["a b c", "b c"]))


def test_an_example_may_have_no_label():
    x, y = marks(6)
    model = Recognizer(hidden_size=2, valid_share=0, training={"epochs": 1}).fit(x, ["", *y[1:]])
    assert len(model.predict(x)) == 6


def test_edits_are_counted():
    assert edit_distance("kitten", "sitting") == 3  # Wagner and Fischer's example
    assert edit_distance("", "abc") == edit_distance([1, 2, 3], []) == 3
    assert error_rate([[1, 2], [3]], [[1, 2, 4], [3]]) == pytest.approx(1 / 4)


def test_strips_are_glued_from_images_of_their_split():
    strips = digit_strips("valid", 20)
    assert {len(number) for number in strips.digits} == {3, 4, 5, 6}
    images = {image.tobytes() for image in digit_images("valid").images}
    for columns, number in zip(*strips, strict=True):
        assert columns.shape == (8 * len(number), 8)
        for place in range(len(number)):
            assert columns[8 * place : 8 * place + 8].T.copy().tobytes() in images
    counts = [len(digit_images(split).digits) for split in ("train", "valid", "test")]
    assert sum(counts) == 1797
    with pytest.raises(ConfigError, match="'tst'; did you mean 'test'"):
        digit_images("tst")


def test_sequences_are_read_from_json_lines(tmp_path):
    path = tmp_path / "strips.jsonl"
    path.write_text(json.dumps({"x": [[1, 2], [3, 4]], "labels": "ab"}) + "\n")
    read = read_vector_sequences(path)
    assert read.x[0].tolist() == [[1, 2], [3, 4]] and read.labels == ["ab"]
    for bad, message in (
        ('{"x": [[1], [2, 3]], "labels": []}', "vectors of one width"),
        ('{"x": [[1]]}', "must have a column 'labels'"),
        ('{"x": [[1]], "labels": 5}', "list of labels or a string, got 5"),
        ('{"x": [[NaN]], "labels": []}', "NaN"),
    ):
        path.write_text(f"\n{bad}\n")
        with pytest.raises(DataError, match=message):
            read_vector_sequences(path)
