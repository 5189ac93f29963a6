"""Training, measuring and using models from the command line."""

from __future__ import annotations

import json

import pytest

from commands import call_command, start_command


@pytest.fixture(scope="module")
def poet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("poet")
    (folder / "text.txt").write_text("a rose is a rose\na thorn is a thorn\n" * 40)
    result = start_command(
        *("train", "--task", "lm", "--arch", "rnn", "--train", folder / "text.txt"),
        *("--valid", folder / "text.txt", "--out", folder / "model"),
        *("--set", "model.hidden_size=16", "--set", "training.epochs=8"),
        *("--set", "training.optimizer.rate=0.02", "--set", "training.batch.batch_size=4"),
        *("--set", "window=10", "--json"),
    )
    assert result.returncode == 0, result.stderr
    return folder, json.loads(result.stdout)


def test_train_prints_the_metrics_and_saves_all(poet):
    folder, rows = poet
    metrics = {row["what"]: row["value"] for row in rows}
    # Knowing only how frequent the five words are gives exp(entropy) = 4.76.
    assert 1 <= metrics["valid_perplexity"] < 2
    names = {path.name for path in (folder / "model").iterdir()}
    assert {"seqloom.json", "weights.safetensors", "README.md", "training"} <= names
    assert (folder / "model" / "training" / "learning-curve.png").stat().st_size > 1000


def test_evaluate_agrees_with_training(poet):
    folder, rows = poet
    result = call_command("evaluate", folder / "model", folder / "text.txt", "--json")
    found = {row["what"]: row["value"] for row in json.loads(result.stdout)}
    assert found["perplexity"] == pytest.approx(rows[0]["value"], rel=0.05)
    assert found["tokens"] == 80 * 6


def test_score_reads_lines_and_prints_json(poet):
    folder, _ = poet
    result = call_command(
        "score", folder / "model", "--json", input="a rose is a rose\na rose is a dog\n"
    )
    good, bad = (json.loads(line) for line in result.stdout.splitlines())
    assert good["log_prob"] > bad["log_prob"]
    assert (good["unknown"], bad["unknown"]) == (0, 1)


def test_generate_is_the_same_for_the_same_seed(poet):
    folder, _ = poet
    first = call_command("generate", folder / "model", "a", "--seed", 3, "-n", 2)
    assert (
        first.stdout == call_command("generate", folder / "model", "a", "--seed", 3, "-n", 2).stdout
    )
    assert all(line.startswith("a ") for line in first.stdout.splitlines())


def test_predict_names_the_next_word(poet):
    folder, _ = poet
    result = start_command("predict", folder / "model", input="a rose is a\n")
    assert result.stdout.splitlines()[1].split("\t")[0] in {"rose", "thorn"}


def test_inspect_lists_every_weight(poet):
    folder, _ = poet
    shown = json.loads(call_command("inspect", folder / "model", "--json").stdout)
    assert (shown["task"], shown["architecture"]) == ("lm", "rnn")
    shapes = {row["weight"]: row["shape"] for row in shown["weights"]}
    assert shapes["rnn.weight_hh_l0"] == [16, 16]


def test_a_directory_that_exists_is_refused_and_untouched(poet):
    folder, _ = poet
    before = (folder / "model" / "seqloom.json").read_bytes()
    result = call_command(
        *("train", "--task", "lm", "--arch", "rnn", "--train", folder / "text.txt"),
        *("--out", folder / "model"),
    )
    assert result.returncode == 1
    assert "exists already" in result.stderr
    assert (folder / "model" / "seqloom.json").read_bytes() == before


def test_a_classifier_from_a_table(tmp_path):
    (tmp_path / "reviews.csv").write_text("review,stars\n" + "good film,5\nbad film,1\n" * 5)
    fields = ["--field", "text=review", "--field", "label=stars"]
    result = call_command(
        *("train", "--task", "classify", "--arch", "softmax", "--out", tmp_path / "judge"),
        *("--train", tmp_path / "reviews.csv", *fields),
    )
    assert result.returncode == 0, result.stderr
    predicted = call_command("predict", tmp_path / "judge", "--json", input="a good one\n")
    assert json.loads(predicted.stdout)["label"] == "5"
    measured = call_command(
        "evaluate", tmp_path / "judge", tmp_path / "reviews.csv", *fields, "--json"
    )
    assert json.loads(measured.stdout)[0] == {"what": "accuracy", "value": 1.0}


def test_a_perceptron_predicts_without_probabilities(tmp_path):
    (tmp_path / "reviews.csv").write_text("text,label\n" + "good film,5\nbad film,1\n" * 5)
    model = tmp_path / "judge"
    made = call_command(
        *("train", "--task", "classify", "--arch", "perceptron", "--out", model),
        *("--train", tmp_path / "reviews.csv"),
    )
    assert made.returncode == 0, made.stderr
    lines = "a good one\n\n  \na bad one\n"  # blank lines are left out
    found = call_command("predict", model, input=lines).stdout
    assert found == "label\ttext\n5\ta good one\n1\ta bad one\n"
    found = call_command("predict", model, "--json", input=lines).stdout
    assert json.loads(found.splitlines()[0]) == {"label": "5", "text": "a good one"}


def test_verbs_say_that_blank_lines_are_left_out():
    for verb in ("predict", "relate"):
        assert "lank lines are left out" in " ".join(call_command(verb, "--help").stdout.split())


def test_a_regressor_from_a_table(tmp_path):
    rows = "".join(f"{x},{y},{2 * x - y + 1}\n" for x in range(5) for y in range(4))
    (tmp_path / "numbers.csv").write_text("x,y,z\n" + rows)
    result = call_command(
        *("train", "--task", "regress", "--arch", "linear", "--out", tmp_path / "line"),
        *("--train", tmp_path / "numbers.csv", "--field", "target=z"),
    )
    assert result.returncode == 0, result.stderr
    predicted = call_command("predict", tmp_path / "line", "--json", input="x,y\n10,3\n")
    assert json.loads(predicted.stdout)["predicted"] == pytest.approx(18, abs=1e-6)


def test_numbers_that_are_none_are_named(tmp_path):
    (tmp_path / "numbers.csv").write_text("x,target\n1,2\ntwo,3\n")
    result = call_command(
        *("train", "--task", "regress", "--arch", "linear", "--out", tmp_path / "line"),
        *("--train", tmp_path / "numbers.csv"),
    )
    assert result.returncode == 1
    assert f"{tmp_path / 'numbers.csv'}:3" in result.stderr
    assert "'two'" in result.stderr


def test_check_makes_one_update_and_leaves_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("a b c\n" * 10)
    result = call_command(
        *("check", "--task", "lm", "--arch", "nnlm", "--train", tmp_path / "a.txt"), cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("ok: lm nnlm, ")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "lm", "--arch", "lstn"], "did you mean 'lstm'?"),
        (["--task", "ml", "--arch", "lstm"], "unknown task 'ml'"),
        (["--task", "lm", "--arch", "lstm", "--set", "model.hiden_size=3"], "'hidden_size'"),
        (["--task", "lm", "--arch", "lstm", "--set", "modle.hidden_size=3"], "'model'"),
        (["--task", "lm", "--arch", "lstm", "--set", "training.epochs=-1"], "got -1"),
        (["--task", "lm", "--arch", "lstm", "--set", "training.epochs=many"], "'many'"),
    ],
)
def test_wrong_settings_are_named(tmp_path, arguments, message):
    (tmp_path / "a.txt").write_text("a b c\n" * 10)
    result = call_command(
        "train", *arguments, "--train", tmp_path / "a.txt", "--out", tmp_path / "o"
    )
    assert result.returncode == 1
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "o").exists()


def test_recipes_are_listed_and_unknown_ones_refused():
    listed = {row["recipe"] for row in json.loads(call_command("reproduce", "--json").stdout)}
    assert {"ptb-lstm", "ptb-rnn", "ptb-nnlm"} <= listed
    assert "did you mean 'ptb-lstm'?" in call_command("reproduce", "ptb-lstn").stderr


def test_reproduce_compares_with_the_target(tmp_path):
    (tmp_path / "text.txt").write_text("a rose is a rose\n" * 30)
    (tmp_path / "toy.toml").write_text(
        f"""
task = "lm"
arch = "nnlm"
[data]
train = "{tmp_path / "text.txt"}"
valid = "{tmp_path / "text.txt"}"
test = "{tmp_path / "text.txt"}"
[model]
hidden_size = 8
embed_size = 8
[training]
epochs = 2
[target]
metric = "perplexity"
value = 1000.0
source = "anything does better"
"""
    )
    seeds = ("--seeds", 2, "--set", "training.seed=3")
    result = call_command("reproduce", tmp_path / "toy.toml", *seeds, "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [row["seed"] for row in rows] == [3, 4]
    assert [row["reached"] for row in rows] == [True, True]
    assert rows[0]["test_perplexity"] != rows[1]["test_perplexity"]
    assert "anything does better" in result.stderr


def test_a_recipe_says_what_of_test_sets_its_training_text_has(tmp_path):
    (tmp_path / "text.txt").write_text("a b c d e f g h i\nx y\n" * 9)
    (tmp_path / "test.txt").write_text("a b c d e f g h\nb c d e f g h a b\n")
    (tmp_path / "recipe.toml").write_text(
        f"""
task = "lm"
arch = "ngram"
[data]
train = "{tmp_path / "text.txt"}"
judged_on = ["{tmp_path / "test.txt"}"]
[text]
unit = "space"
"""
    )
    made = call_command("train", tmp_path / "recipe.toml", "--out", tmp_path / "model")
    # Runs of eight: a..h is there; b..a and c..b are not.
    told = "the training text has 1 of 3 runs of 8 words and 1 of 2 whole sentences"
    assert made.returncode == 0 and told in made.stderr
    (tmp_path / "test.txt").unlink()
    again = call_command("reproduce", tmp_path / "recipe.toml")
    assert again.returncode == 0 and "not compared with the test sets" in again.stderr


def test_a_recipe_that_learns_from_another_has_that_fitted_first(tmp_path):
    (tmp_path / "own.csv").write_text("text,label\n" + "a good film,+\na bad film,-\n" * 4)
    (tmp_path / "more.csv").write_text("text,label\n" + "a fine film,+\na dull film,-\n" * 4)
    (tmp_path / "further.txt").write_text("fine\ndull\n" * 9)
    (tmp_path / "teacher.toml").write_text(
        f"""
task = "classify"
arch = "softmax"
[data]
train = "{tmp_path / "more.csv"}"
"""
    )
    (tmp_path / "taught.toml").write_text(
        f"""
task = "classify"
arch = "softmax"
[data]
train = "{tmp_path / "own.csv"}"
test = "{tmp_path / "more.csv"}"
[teaching]
teachers = ["recipe:{tmp_path / "teacher.toml"}"]
texts = "{tmp_path / "further.txt"}"
[target]
metric = "accuracy"
value = 1.0
at_least = true
source = "all of it"
"""
    )
    runs = tmp_path / "runs"
    made = call_command("reproduce", tmp_path / "taught.toml", "--out", runs, "--json")
    assert made.returncode == 0 and "teacher.toml first" in made.stderr
    assert json.loads(made.stdout)[0]["reached"] is True
    teacher = (runs / "teacher" / "seqloom.json").read_text()
    again = call_command("train", tmp_path / "taught.toml", "--out", runs / "again")
    assert again.returncode == 0 and "first" not in again.stderr  # it lies there
    assert (runs / "teacher" / "seqloom.json").read_text() == teacher
    checked = call_command("check", tmp_path / "taught.toml")
    assert checked.returncode == 0 and "ok: classify softmax" in checked.stdout
    changed = f'teaching.teachers=["recipe:{tmp_path / "teacher.toml"}  training.epochs=2"]'
    other = call_command(
        "train", tmp_path / "taught.toml", "--out", runs / "other", "--set", changed
    )
    assert other.returncode == 0 and "first" in other.stderr
    (place,) = set(runs.glob("teacher-*"))
    facts = json.loads((place / "seqloom.json").read_text())
    assert facts["provenance"]["training"]["epochs"] == 2


def strict(text):
    """JSON as its standard has it: no NaN, no infinity."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_what_a_model_finds_impossible_is_null_in_json(tmp_path):
    from seqloom import LanguageModel

    texts = ["a b", "b a"]
    model = LanguageModel("ngram", order=2, smoothing="maximum-likelihood").fit(texts)
    place, path, lists = model.save(tmp_path / "model"), tmp_path / "a.txt", tmp_path / "n.tsv"
    path.write_text("a a\na b\n")
    lists.write_text("one\t-1.0\ta b\none\t-2.0\ta a\n")
    never, found = map(strict, call_command("score", place, path, "--json").stdout.splitlines())
    assert (never["log_prob"], never["perplexity"]) == (None, None)
    assert found["perplexity"] == pytest.approx(2)
    rows = strict(call_command("evaluate", place, path, "--json").stdout)
    assert {row["what"]: row["value"] for row in rows}["perplexity"] is None
    best, worst = map(strict, call_command("rescore", place, lists, "--json").stdout.splitlines())
    assert best["text"] == "a b" and None in worst.values()


def test_json_text_holds_no_number_that_is_none():
    from seqloom.cli.output import json_text

    value = {"a": float("nan"), "b": [float("inf"), 1.5, (float("-inf"), "中")], "c": True}
    assert strict(json_text(value)) == {"a": None, "b": [None, 1.5, [None, "中"]], "c": True}


def test_recipes_that_learn_from_what_cannot_be_are_refused(tmp_path):
    (tmp_path / "data.csv").write_text("text,label\n" + "good,+\nbad,-\n" * 4)
    (tmp_path / "other.csv").write_text("text,label\n" + "good,-\nbad,+\n" * 4)
    recipe = 'task = "classify"\narch = "softmax"\n{}[data]\ntrain = "{}"\n'
    data, place = tmp_path / "data.csv", f"recipe:{tmp_path}"
    needs = {"a": f"{place}/b.toml", "b": f"{place}/a.toml", "pupil": f"{place}/plain.toml"}
    for name, needed in {**needs, "no": "recipe:", "plain": None}.items():
        teaching = "" if needed is None else f'teaching.teachers = ["{needed}"]\n'
        (tmp_path / f"{name}.toml").write_text(recipe.format(teaching, data))
    ring = call_command("check", tmp_path / "a.toml")
    assert ring.returncode == 1 and "must not need each other" in ring.stderr
    assert "name of a recipe" in call_command("check", tmp_path / "no.toml").stderr
    other = tmp_path / "runs" / "plain"
    call_command(
        *("train", tmp_path / "plain.toml", "--out", other),
        *("--set", f"data.train={tmp_path / 'other.csv'}"),
    )
    found = call_command("train", tmp_path / "pupil.toml", "--out", tmp_path / "runs" / "pupil")
    assert found.returncode == 1 and "holds another model than its recipe gives" in found.stderr


def test_odd_settings_of_runs_are_told_of(tmp_path):
    (tmp_path / "data.csv").write_text("text,label\n" + "good,+\nbad,-\n" * 4)
    options = ("--task", "classify", "--arch", "perceptron", "--train", tmp_path / "data.csv")
    checked = call_command("check", *options)
    assert checked.returncode == 0 and "ok: classify perceptron" in checked.stdout
    (tmp_path / "toy.toml").write_text(
        f"""
task = "classify"
arch = "softmax"
[data]
train = "{tmp_path / "data.csv"}"
test = "{tmp_path / "data.csv"}"
[target]
metric = "accurracy"
value = 0.9
source = "a guess"
"""
    )
    wrong = call_command("reproduce", tmp_path / "toy.toml", "--set", "training.seed=abc")
    assert wrong.returncode == 1 and "training.seed" in wrong.stderr
    told = call_command("reproduce", tmp_path / "toy.toml")
    assert told.returncode == 0 and "unknown metric 'accurracy'" in told.stderr
