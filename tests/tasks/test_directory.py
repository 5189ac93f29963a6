"""Model directories: written whole, and refused in one clear line when anything is wrong."""

from __future__ import annotations

import errno
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import seqloom
from seqloom import Classifier, LanguageModel
from seqloom.errors import ConfigError, DataError, SeqloomError
from seqloom.tasks import directory as directory_module
from seqloom.tasks.directory import (
    ModelHeader,
    find_model,
    load_weights,
    prepare_place,
    read_model,
    write_model,
)

HEADER = ModelHeader(task="lm", architecture="rnn", config={"vocab_size": 3}, metrics={"ppl": 1.5})
WEIGHTS = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.zeros(1)}
QUICK = {"epochs": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    """A real, small model that tests copy before they spoil it."""
    place = tmp_path_factory.mktemp("models") / "good"
    model = LanguageModel("rnn", hidden_size=4, num_layers=1, training=QUICK)
    model.fit(["a cat sat", "a dog ran"] * 5).save(place)
    return place


@pytest.fixture
def model(fitted, tmp_path) -> Path:
    return Path(shutil.copytree(fitted, tmp_path / "model"))


def rewrite(place: Path, *, honest: bool = False, **changes) -> None:
    """Change the header; an honest forger gives it the right digest."""
    path = place / "seqloom.json"
    values = json.loads(path.read_text()) | changes
    if honest:
        values["digest"] = directory_module._digest(values)
    path.write_text(json.dumps(values))


def one_line(error: SeqloomError) -> str:
    text = str(error)
    assert "\n" not in text and len(text) < 500
    return text


# -- writing -------------------------------------------------------------------------------------


def test_what_is_written_is_read(tmp_path):
    place = write_model(tmp_path / "m", HEADER, WEIGHTS, {"x.json": {"é": 1}, "y.txt": "文"})
    stored = read_model(place)
    assert stored.header == HEADER
    assert stored.json("x.json") == {"é": 1}
    assert (place / "y.txt").read_text(encoding="utf-8") == "文"
    assert all(torch.equal(w, WEIGHTS[name]) for name, w in stored.weights().items())
    assert sorted(path.name for path in place.iterdir()) == [
        "README.md",
        "seqloom.json",
        "weights.safetensors",
        "x.json",
        "y.txt",
    ]


def test_half_a_pair_of_surrogates_is_written_and_read(tmp_path):
    labels = ["\ud800", "东"]
    model = Classifier("softmax").fit(["a", "b"], labels)
    model.metrics_ = {"f1/\ud800": 0.5}
    place = model.save(tmp_path / "model")
    assert "f1/\\ud800" in (place / "README.md").read_text(encoding="utf-8")
    assert Classifier.load(place).predict(["a", "b"]).tolist() == labels


def test_a_model_may_be_read_by_whoever_may_read_a_new_file(tmp_path):
    """The server that loads a model runs as somebody else."""
    place = write_model(tmp_path / "m", HEADER, WEIGHTS, {"x": "y"})
    (tmp_path / "plain").touch()
    mode = (tmp_path / "plain").stat().st_mode
    assert {path.name: path.stat().st_mode for path in place.iterdir()} == dict.fromkeys(
        ["README.md", "seqloom.json", "weights.safetensors", "x"], mode
    )


def test_a_model_without_weights(tmp_path):
    stored = read_model(write_model(tmp_path / "m", HEADER, None, {"counts.bin": b"\0\1"}))
    assert (stored.place / "counts.bin").read_bytes() == b"\0\1"
    with pytest.raises(DataError, match=r"weights\.safetensors: is no weights file"):
        stored.weights()


def test_a_file_may_be_written_by_a_function(tmp_path):
    """What is large is never held as bytes."""
    place = write_model(
        tmp_path / "m", HEADER, None, {"x.bin": lambda path: path.write_bytes(b"\1\2")}, numbers=5
    )
    assert (read_model(place).place / "x.bin").read_bytes() == b"\1\2"
    assert "5 numbers" in (place / "README.md").read_text()

    def full(path):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DataError, match=r"cannot be written.*No space left"):
        write_model(tmp_path / "n", HEADER, None, {"x.bin": full})
    assert not (tmp_path / "n").exists()


def test_an_empty_directory_may_be_written_into(tmp_path):
    read_model(write_model(tmp_path, HEADER, WEIGHTS, {}))


def test_the_card_names_what_matters(tmp_path):
    header = ModelHeader(
        task="lm",
        architecture="rnn",
        config={"hidden_size": 650},
        metrics={"perplexity": 81.23456789},
        provenance={"train": "a|b", "training": {"epochs": 3}},
    )
    card = (write_model(tmp_path / "m", header, WEIGHTS, {}) / "README.md").read_text()
    assert "# lm: rnn" in card and "7 numbers" in card
    assert "| perplexity | 81.2346 |" in card
    assert "| hidden_size | 650 |" in card
    assert "| train | a\\|b |" in card
    assert '| training | `{"epochs": 3}` |' in card


def in_the_way(place: Path) -> str:
    place.mkdir()
    (place / "precious.txt").write_text("keep me")
    return "exists already; name a new directory or remove it"


def a_finished_model(place: Path) -> str:
    write_model(place, HEADER, WEIGHTS, {})
    return "exists already; name a new directory or remove it"


def a_finished_run(place: Path) -> str:
    write_model(place, HEADER, WEIGHTS, {})
    (place / "training").mkdir()
    return "exists already; name a new directory or remove it"


def a_file(place: Path) -> str:
    place.write_text("keep me")
    return "is a file; name a directory"


def under_a_file(place: Path) -> str:
    place.parent.write_text("keep me")
    return r"cannot be made \(Not a directory\)"


@pytest.mark.parametrize(
    "obstacle",
    [in_the_way, a_finished_model, a_finished_run, a_file, under_a_file],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("action", ["save", "fit", "write"])
def test_what_is_in_the_way_is_not_touched(obstacle, action, tmp_path, fitted):
    place = tmp_path / "parent" / "out"
    if obstacle is not under_a_file:
        place.parent.mkdir()
    message = obstacle(place)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(DataError, match=f"{place}: {message}") as caught:
        if action == "save":
            LanguageModel.load(fitted).save(place)
        elif action == "fit":
            LanguageModel("rnn", training=QUICK).fit(["a b"], out=place)
        else:
            write_model(place, HEADER, WEIGHTS, {})
    one_line(caught.value)
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_an_unfinished_run_is_neither_overwritten_nor_loaded(tmp_path):
    place = tmp_path / "m"
    (place / "training").mkdir(parents=True)
    (place / "training" / "last.safetensors").write_bytes(b"x")
    with pytest.raises(DataError, match="m: holds a run that has not finished; resume it or"):
        prepare_place(place)
    with pytest.raises(DataError, match="m: holds a run that has not finished; resume it"):
        read_model(place)
    assert prepare_place(place, resume=True) == place


def test_a_place_that_may_not_be_written(tmp_path, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DataError, match=r"m: cannot be made \(Permission denied\)"):
        write_model(tmp_path / "m", HEADER, WEIGHTS, {})


def test_a_place_that_may_not_be_looked_into(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(DataError, match=r"cannot be made \(Permission denied\)"):
        write_model(tmp_path, HEADER, WEIGHTS, {})


@pytest.mark.parametrize("full_at", ["weights.safetensors", "big.bin", "README.md", "seqloom.json"])
def test_a_disk_that_fills_up_leaves_nothing(full_at, tmp_path, monkeypatch):
    real = Path.write_bytes

    def write(self, data):
        if full_at in self.name:
            real(self, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, data)

    def save(tensors, path, *more):
        path.write_bytes(b"weights")

    monkeypatch.setattr(Path, "write_bytes", write)
    monkeypatch.setattr("safetensors.torch.save_file", save)
    with pytest.raises(DataError, match=r"cannot be written.*No space left on device") as caught:
        write_model(tmp_path / "m", HEADER, WEIGHTS, {"big.bin": b"12345678"})
    one_line(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fills_up_after_training_keeps_the_run(tmp_path, monkeypatch):
    place = tmp_path / "m"
    estimator = LanguageModel("rnn", hidden_size=4, training=QUICK)

    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(directory_module, "_write_file", full)
        with pytest.raises(DataError, match="m: cannot be written"):
            estimator.fit(["a cat sat"] * 5, out=place)
    with pytest.raises(DataError, match="has not finished; resume it"):
        seqloom.load(place)
    estimator.fit(["a cat sat"] * 5, out=place, resume=True)
    assert seqloom.load(place).score("a cat") == estimator.score("a cat")


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".", "", "/tmp/x", "a\\b"])
def test_names_that_leave_the_directory_are_never_written(name, tmp_path, fitted):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "precious").write_text("keep me")
    for files, models in (({name: "text"}, {}), ({}, {name: fitted})):
        with pytest.raises(DataError, match="is not a plain file name"):
            write_model(tmp_path / "m", HEADER, WEIGHTS, files, models)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x" / "precious").read_text() == "keep me"


# -- reading -------------------------------------------------------------------------------------


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def cut_weights(place):
    path = place / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    return r"weights\.safetensors: must hold [\d,]+ bytes, got [\d,]+; it was cut"


def flipped_bit(place):
    path = place / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    return r"weights\.safetensors: is not the file the model was saved with; it was altered"


def swapped_weights(place):
    path = place / "weights.safetensors"
    size = path.stat().st_size
    save_file({"other": torch.zeros(1)}, path)
    path.write_bytes(path.read_bytes().ljust(size, b"\0")[:size])
    return r"weights\.safetensors: is not the file the model was saved with"


def pickled_weights(place):
    (place / "weights.safetensors").write_bytes(pickle.dumps(Evil()))
    return r"weights\.safetensors: must hold [\d,]+ bytes, got \d+"


def missing_weights(place):
    (place / "weights.safetensors").unlink()
    return r"model: weights\.safetensors is missing from the model directory"


def missing_vocabulary(place):
    (place / "vocabulary.json").unlink()
    return r"model: vocabulary\.json is missing"


def edited_vocabulary(place):
    path = place / "vocabulary.json"
    path.write_text(path.read_text().replace("cat", "dot"))
    return r"vocabulary\.json: is not the file the model was saved with; it was altered"


def edited_header(place):
    rewrite(place, metrics={"perplexity": 1.0})
    return r"seqloom\.json: was edited after the model was saved"


def other_format(place):
    rewrite(place, format=2, honest=True)
    return r"seqloom\.json: must have format 1, got 2; it was written by another version"


def a_list(place):
    (place / "seqloom.json").write_text("[1]")
    return r"seqloom\.json: must have format 1, got None"


def no_json(place):
    (place / "seqloom.json").write_text('{"format": 1')
    return r"seqloom\.json: is not a model's header"


def not_utf8(place):
    (place / "seqloom.json").write_bytes(b"\xff\xfe\x00")
    return r"seqloom\.json: is not a model's header"


def deep_json(place):
    (place / "seqloom.json").write_text("[" * 200_000)
    return r"seqloom\.json: is not a model's header"


def no_task(place):
    rewrite(place, task=None, honest=True)
    return r"seqloom\.json: task must be str, got None"


def files_as_a_list(place):
    rewrite(place, files=["weights.safetensors"], honest=True)
    return r"seqloom\.json: files must be dict, got \['weights"


def a_file_without_a_hash(place):
    rewrite(place, files={"vocabulary.json": 5}, honest=True)
    return r"seqloom\.json: file 'vocabulary\.json' must have bytes and sha256, got 5"


def climbing_file(place):
    outside = place.parent / "x"
    outside.write_text("secret")
    rewrite(place, files={"../x": directory_module._describe(outside)}, honest=True)
    return r"model: '\.\./x' is not a plain file name; it would leave the directory"


def climbing_model(place):
    rewrite(place, models={"../model": "0"}, honest=True)
    return r"model: '\.\./model' is not a plain file name"


def unknown_task(place):
    rewrite(place, task="lmm", honest=True)
    return r"seqloom\.json: unknown task 'lmm'"


def unknown_architecture(place):
    rewrite(place, architecture="lstn", honest=True)
    return r"seqloom\.json: unknown architecture for task 'lm' 'lstn'; did you mean 'lstm'"


def unknown_setting(place):
    config = json.loads((place / "seqloom.json").read_text())["config"]
    rewrite(place, config=config | {"hiden_size": 4}, honest=True)
    return r"seqloom\.json: unknown setting 'hiden_size'; did you mean 'hidden_size'"


def wrong_type(place):
    config = json.loads((place / "seqloom.json").read_text())["config"]
    rewrite(place, config=config | {"hidden_size": "wide"}, honest=True)
    return r"seqloom\.json: setting 'hidden_size' must be a whole number, got 'wide'"


def wrong_size(place):
    config = json.loads((place / "seqloom.json").read_text())["config"]
    rewrite(place, config=config | {"hidden_size": 5}, honest=True)
    return r"model: does not fit the configuration \(size mismatch"


def other_vocabulary_size(place):
    config = json.loads((place / "seqloom.json").read_text())["config"]
    rewrite(place, config=config | {"vocab_size": 99}, honest=True)
    return r"vocabulary\.json: must hold 99 words, got \d+"


def no_settings(place):
    rewrite(place, settings={}, honest=True)
    return r"seqloom\.json: lacks the setting 'text'"


def empty(place):
    shutil.rmtree(place)
    place.mkdir()
    return r"model: is not a model directory \(there is no seqloom\.json\)"


def gone(place):
    shutil.rmtree(place)
    return r"model: no such directory"


def a_plain_file(place):
    shutil.rmtree(place)
    place.write_text("x")
    return r"model/seqloom\.json: is not a model's header"


def header_is_a_folder(place):
    (place / "seqloom.json").unlink()
    (place / "seqloom.json").mkdir()
    return r"seqloom\.json: is not a model's header"


DAMAGES = [
    cut_weights,
    flipped_bit,
    swapped_weights,
    pickled_weights,
    missing_weights,
    missing_vocabulary,
    edited_vocabulary,
    edited_header,
    other_format,
    a_list,
    no_json,
    not_utf8,
    deep_json,
    no_task,
    files_as_a_list,
    a_file_without_a_hash,
    climbing_file,
    climbing_model,
    unknown_task,
    unknown_architecture,
    unknown_setting,
    wrong_type,
    wrong_size,
    other_vocabulary_size,
    no_settings,
    empty,
    gone,
    a_plain_file,
    header_is_a_folder,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_damaged_directories_are_refused_in_one_line(damage, model):
    message = damage(model)
    with pytest.raises(DataError, match=message) as caught:
        seqloom.load(model)
    assert str(model) in one_line(caught.value)


def test_a_header_that_is_too_large_is_not_read(model, monkeypatch):
    monkeypatch.setattr(directory_module, "MAX_HEADER_BYTES", 100)
    with pytest.raises(DataError, match=r"seqloom\.json: is larger than 100 bytes"):
        read_model(model)


def test_the_card_may_be_edited(model):
    (model / "README.md").write_text("my model")
    seqloom.load(model)


def test_a_directory_of_another_task_is_refused(model):
    rewrite(model, task="classify", honest=True)
    with pytest.raises(ConfigError, match=r"task 'classify', not 'lm'; seqloom\.load opens"):
        LanguageModel.load(model)


def test_pickled_weights_with_honest_hashes_are_never_opened(model):
    path = model / "weights.safetensors"
    path.write_bytes(pickle.dumps(Evil()))
    files = json.loads((model / "seqloom.json").read_text())["files"]
    rewrite(model, files=files | {path.name: directory_module._describe(path)}, honest=True)
    with pytest.raises(DataError, match=r"weights\.safetensors: is no weights file"):
        seqloom.load(model)


def test_weights_of_another_model_with_honest_hashes(model):
    path = model / "weights.safetensors"
    save_file({"other": torch.zeros(1)}, path)
    files = json.loads((model / "seqloom.json").read_text())["files"]
    rewrite(model, files=files | {path.name: directory_module._describe(path)}, honest=True)
    with pytest.raises(DataError, match="does not fit the configuration") as caught:
        load_weights(torch.nn.Linear(2, 2), read_model(model))
    one_line(caught.value)


def test_an_unknown_name_of_a_shipped_model():
    with pytest.raises(DataError, match="no-such-model: no such directory, and no model of that"):
        find_model("no-such-model")
    assert find_model("some/where") == Path("some/where")


# -- models inside models ------------------------------------------------------------------------


@pytest.fixture
def outer(fitted, tmp_path) -> Path:
    (fitted / "training").mkdir(exist_ok=True)  # must not be copied along
    return write_model(tmp_path / "outer", HEADER, WEIGHTS, {}, {"inner": fitted})


def test_a_nested_model_is_copied_and_loads(outer, fitted):
    stored = read_model(outer)
    assert stored.models == {"inner": outer / "inner"}
    assert not (outer / "inner" / "training").exists()
    assert seqloom.load(outer / "inner").score("a cat") == seqloom.load(fitted).score("a cat")


def test_a_nested_model_that_was_tampered_with(outer):
    path = outer / "inner" / "vocabulary.json"
    path.write_text(path.read_text().replace("cat", "dot"))
    with pytest.raises(DataError, match=r"inner/vocabulary\.json: is not the file"):
        read_model(outer)


def test_a_nested_model_that_was_exchanged(outer, tmp_path):
    other = write_model(tmp_path / "other", HEADER, WEIGHTS, {"y": "z"})
    shutil.rmtree(outer / "inner")
    shutil.copytree(other, outer / "inner")
    with pytest.raises(DataError, match="inner: is not the model this one was saved with"):
        read_model(outer)


def test_a_nested_model_that_is_gone(outer):
    shutil.rmtree(outer / "inner")
    with pytest.raises(DataError, match="inner: no such directory"):
        read_model(outer)


def test_a_damaged_model_is_not_nested(model, tmp_path):
    flipped_bit(model)
    with pytest.raises(DataError, match="it was altered"):
        write_model(tmp_path / "outer", HEADER, WEIGHTS, {}, {"inner": model})
    assert not (tmp_path / "outer").exists()


# -- without torch -------------------------------------------------------------------------------

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import seqloom
from seqloom.errors import BackendError
try:
    ACTION
except BackendError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("action", "what"),
    [
        ("seqloom.LanguageModel('rnn')", "architecture 'rnn'"),
        ("seqloom.load(sys.argv[1])", "architecture 'rnn'"),
        ("seqloom.Classifier", "Classifier"),
    ],
)
def test_without_torch_the_extra_is_named(action, what, fitted):
    code = WITHOUT_TORCH.replace("ACTION", action)
    result = subprocess.run(
        [sys.executable, "-c", code, str(fitted)], capture_output=True, text=True, check=True
    )
    assert result.stdout == (
        f"{what} needs torch, which is not installed; pip install 'seqloom[neural]'\n"
    )


@pytest.mark.parametrize("given", [None, 5, b"lm"])
def test_what_names_no_model_is_refused(given):
    with pytest.raises(ConfigError, match=f"a directory or a name, got {given!r}"):
        find_model(given)
