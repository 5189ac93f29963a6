"""What the studio asks of a server besides the models' own endpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from served import Server

from seqloom import Classifier, LanguageModel, load
from seqloom.errors import ConfigError, InputError
from seqloom.explain.products import state_products
from seqloom.nn.cells import CELLS, LSTM
from seqloom.nn.recurrent import Recurrent
from seqloom.serving.studio_cells import (
    describe_cells,
    gradient_distances,
    steps_of_cell,
    steps_of_model,
)
from seqloom.serving.studio_runs import list_runs, read_curve
from seqloom.serving.studio_training import find_run, new_place, train_classifier

TABLE = "words,kind\n" + "".join(f"good day {i},+\nbad day {i},-\n" for i in range(5))


# -- cells -----------------------------------------------------------------------------------------


def test_every_cell_is_described_by_its_own_equations():
    found = {row["name"]: row for row in describe_cells()["cells"]}
    assert list(found) == list(CELLS)
    assert found["lstm"]["equations"] == LSTM.equations()


def test_steps_of_a_model_are_what_the_network_computes():
    options = {"hidden_size": 6, "embed_size": 5, "num_layers": 2, "last_size": 4}
    training = {"epochs": 1, "device": "cpu"}
    model = LanguageModel("lstm", training=training, **options).fit(["a rose is a rose"] * 8)
    words = [model.vocabulary_.specials.eos, "a", "rose"]
    ids = torch.as_tensor(model.vocabulary_.encode(words))[None]
    with torch.no_grad():
        wanted = model.model_(ids).features[0]
        first = model.model_.rnn(model.model_.embedding(ids)).outputs[0]
    for layer, outputs in enumerate((first, wanted)):
        found = steps_of_model(model, {"text": "a rose", "layer": layer})
        assert found["words"] == words
        assert (found["cell"], found["units"], found["layers"]) == ("lstm", outputs.shape[1], 2)
        torch.testing.assert_close(
            torch.tensor(found["values"]["h_t"]), outputs, atol=1e-5, rtol=1e-4
        )
    with pytest.raises(ConfigError, match="between 0 and 1, got 2"):
        steps_of_model(model, {"text": "a rose", "layer": 2})


def test_a_model_without_recurrent_layers_has_no_gates():
    model = LanguageModel("ngram", order=2, smoothing="witten-bell").fit(["a rose is a rose"] * 4)
    with pytest.raises(ConfigError, match="got arch='ngram'"):
        steps_of_model(model, {"text": "a rose"})


def test_steps_of_a_fresh_cell_are_those_of_the_code_that_is_shown():
    words = ["to", "be", "or", "not", "to", "be"]
    found = steps_of_cell({"text": " ".join(words), "cell": "gru", "hidden_size": 4, "seed": 3})
    torch.manual_seed(3)
    layer = Recurrent("gru", 4, 4)
    vectors = torch.randn(4, 4)  # to, be, or, not
    with torch.no_grad():
        wanted = layer(vectors[[0, 1, 2, 3, 0, 1]][None]).outputs[0]
    assert found["words"] == words
    torch.testing.assert_close(torch.tensor(found["values"]["h_t"]), wanted, atol=1e-5, rtol=1e-4)
    with pytest.raises(ConfigError, match="'lstmm'"):
        steps_of_cell({"text": "a", "cell": "lstmm"})
    with pytest.raises(InputError, match="got none"):
        steps_of_cell({"text": "  "})


def test_gradients_are_products_of_jacobians():
    found = gradient_distances({"cells": ["rnn"], "distance": 6, "hidden_size": 4, "seed": 1})
    torch.manual_seed(1)
    inputs = torch.randn(8, 6, 4)
    products = state_products(Recurrent("rnn", 4, 4), inputs).matrices  # by that k steps before
    norms = products.sum(2).norm(dim=-1).mean(1)  # of the sum of the last state, by row
    assert found["norms"]["rnn"] == pytest.approx(norms.tolist(), rel=1e-4)
    assert found["change"]["rnn"] == pytest.approx(float(norms[-1] / norms[0]), rel=1e-4)


# -- runs ------------------------------------------------------------------------------------------


def test_runs_are_found_with_their_metrics_curves_and_leagues(tmp_path: Path):
    served = Classifier("softmax").fit(["a", "b"] * 4, [0, 1] * 4).save(tmp_path / "x" / "served")
    going = tmp_path / "runs" / "going" / "training"
    going.mkdir(parents=True)
    rows = [{"step": 1, "loss": 2.5}, {"step": 2, "loss": 1.5, "accuracy": 0.5}]
    text = "".join(json.dumps(row) + "\n" for row in rows) + '{"step": 3, "lo'
    (going / "metrics.jsonl").write_text(text)
    league = {"league": [{"name": "ngram", "word_perplexity": 9.0}], "contexts": {}}
    compared = tmp_path / "runs" / "compared"
    compared.mkdir()
    (compared / "league.json").write_text(json.dumps(league))
    (tmp_path / "runs" / "other.txt").write_text("no run")
    found = list_runs([("served", served)], tmp_path / "runs")
    by_name = {run["name"]: run for run in found["runs"]}
    assert set(by_name) == {"served", "going"}
    assert (by_name["served"]["task"], by_name["served"]["finished"]) == ("classify", True)
    assert not by_name["going"]["finished"]
    curve = by_name["going"]["curve"]
    assert (curve["steps"], curve["series"]["loss"]) == ([1, 2], [2.5, 1.5])
    assert curve["series"]["accuracy"] == [None, 0.5]
    assert found["leagues"] == [{"name": "compared", **league}]
    assert read_curve(tmp_path / "none")["points"] == 0


def test_a_long_curve_is_thinned_but_keeps_what_was_measured(tmp_path: Path):
    rows: list[dict[str, Any]] = [{"step": i, "loss": float(i)} for i in range(1, 5001)]
    rows[4321]["accuracy"] = 0.9
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    curve = read_curve(path)
    assert curve["points"] < 450
    assert 4322 in curve["steps"]
    assert max(filter(None, curve["series"]["accuracy"])) == 0.9


# -- training --------------------------------------------------------------------------------------


def train(folder: Path, **changes: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    told: list[dict[str, Any]] = []
    asked = {"table": TABLE, "text": "words", "label": "kind", "architecture": "mlp", "epochs": 2}
    place = new_place(folder, "my run!")
    return told, train_classifier({**asked, "place": str(place), **changes}, told.append)


def test_a_table_is_trained_on_and_the_model_kept(tmp_path: Path):
    told, end = train(tmp_path)
    assert told[0] == {"event": "begin", "examples": 10, "labels": ["+", "-"], "run": "my-run-1"}
    assert told[-1]["event"] == "step"
    assert told[-1]["share"] == 1.0
    assert end["event"] == "end"
    assert load(end["place"]).classes_.tolist() == ["+", "-"]
    assert [child.name for child in tmp_path.iterdir()] == ["my-run-1"]
    assert new_place(tmp_path, "my run!").name == "my-run-2"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"text": "word"}, "words"),
        ({"table": "words,kind\nfine,\n"}, "line 2: "),
        ({"architecture": "softmaxx"}, "softmax"),
        ({"table": 'words,kind\n"open,+\n'}, "line 2: a quote is opened"),
    ],
    ids=["column", "label", "architecture", "quote"],
)
def test_what_cannot_be_trained_on_is_told_and_nothing_is_kept(
    tmp_path: Path, changes: dict[str, Any], said: str
):
    _, end = train(tmp_path, **changes)
    assert end["event"] == "refused"
    assert said in end["message"]
    assert str(tmp_path) not in end["message"]
    assert not list(tmp_path.iterdir())


def test_a_run_is_named_never_a_path(tmp_path: Path):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    assert find_run(tmp_path / "runs", "mine").name == "mine"
    for name in ("../runs/mine", str(tmp_path / "runs" / "mine"), ".", "..", ""):
        with pytest.raises(InputError, match="of that name"):
            find_run(tmp_path / "runs", name)
    assert new_place(tmp_path, "../../etc/passwd").parent == tmp_path


# -- over HTTP -------------------------------------------------------------------------------------


def test_the_server_answers_the_studio(server: Server, models: dict[str, Path]):
    page = server.ask("/")
    assert page.status == 200
    assert b"Seqloom Studio" in page.body
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert server.ask("/js/main.js").headers["content-type"].startswith("text/javascript")
    found = server.ask("/studio/steps", {"text": "the cat", "model": "lstm"}).value
    wanted = steps_of_model(load(models["lstm"]), {"text": "the cat"})
    assert found["values"]["c_t"][2] == pytest.approx(wanted["values"]["c_t"][2], abs=2e-5)
    flow = server.ask("/studio/flow", {"cells": ["lstm"], "distance": 3}).value
    assert len(flow["norms"]["lstm"]) == 3
    assert {run["name"] for run in server.ask("/studio/runs").value["runs"]} >= {"lstm", "ngram"}


@pytest.mark.parametrize(
    ("path", "value", "status"),
    [
        ("/studio/steps", {"text": "a", "model": "../lstm"}, 404),
        ("/studio/steps", {"text": "a", "cell": "/etc/passwd"}, 422),
        ("/studio/steps", {"text": "a" * 1001}, 422),
        ("/studio/flow", {"distance": 10_000}, 422),
        ("/studio/try", {"run": "../../etc", "text": "a"}, 404),
        ("/studio/train", {"table": "a,b", "place": "/tmp/x"}, 422),
    ],
    ids=["model", "cell", "long", "far", "run", "place"],
)
def test_the_studio_is_refused_what_nobody_may_ask(
    server: Server, path: str, value: Any, status: int
):
    reply = server.ask(path, value)
    assert reply.status == status
    assert b"etc" not in reply.body
