"""A run that was cut and resumed equals one that was not, bit for bit."""

from __future__ import annotations

import dataclasses
import errno
import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from toy import CrashError, Points, line, run, same_weights, without_seconds

from seqloom import files as files_module
from seqloom.config import from_dict
from seqloom.errors import ConfigError, DataError
from seqloom.training import STOP, TrainConfig
from seqloom.training import checkpoint as checkpoint_module
from seqloom.training import loop as loop_module
from seqloom.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint

OPTIMIZERS = ["sgd", "momentum", "adagrad", "adadelta", "adam", "adamw", "lbfgs"]
SCHEDULES = {
    "constant": {},
    "step": {"factor": 0.5},
    "cosine": {"floor": 0.1},
    "plateau": {"factor": 0.3},
    "noam": {"warmup": 4},
}


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """They take longer than all the rest."""
    monkeypatch.setattr(loop_module, "draw_curve", lambda rows, path: False)


def settings(**changes) -> TrainConfig:
    base = {"epochs": 3, "save_every": 1, "log_every": 3, "device": "cpu", "seed": 7}
    return from_dict(TrainConfig, base | changes)


def assert_resumes_equal(config, tmp_path, *crashes, dropout=0.3, **options):
    """Train once through and once with crashes, and compare all there is."""
    place = tmp_path / "cut"

    def attempt(crash_at):
        # Another initial model every time: what counts comes from the checkpoint.
        seed = 99 if (place / "last.safetensors").exists() else 0
        objective = Points(crash_at=crash_at, **options)
        return run(config, objective, place, model=line(seed, dropout), resume=True)

    objective = Points(**options)
    whole, expected = run(config, objective, tmp_path / "whole", model=line(dropout=dropout))
    for crash_at in crashes or [objective.losses * 3 // 4]:
        with pytest.raises(CrashError):
            attempt(crash_at)
    cut, found = attempt(None)
    assert same_weights(cut, whole)
    assert without_seconds(found.rows) == without_seconds(expected.rows)
    for name in ("steps", "epochs", "reason", "metrics", "best_step"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("last", "best"):
        if not (tmp_path / "whole" / f"{name}.safetensors").exists():
            continue
        a = load_file(tmp_path / "whole" / f"{name}.safetensors")
        b = load_file(tmp_path / "cut" / f"{name}.safetensors")
        assert a.keys() == b.keys()
        assert all(torch.equal(a[key], b[key]) for key in a)
    lines = (tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(text) for text in lines] == found.rows
    assert not list((tmp_path / "cut").glob(".*"))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_and_schedule(optimizer, schedule, tmp_path):
    config = settings(
        optimizer={"name": optimizer, "rate": 0.05},
        schedule={"name": schedule, **SCHEDULES[schedule]},
    )
    dropout = 0.0 if optimizer == "lbfgs" else 0.3  # its line search wants a function
    assert_resumes_equal(config, tmp_path, dropout=dropout)


@pytest.mark.parametrize("crash_at", range(1, 13))
def test_every_moment(crash_at, tmp_path):
    assert_resumes_equal(settings(optimizer={"rate": 0.05}), tmp_path, crash_at, carries=True)


@pytest.mark.parametrize("averaging", ["ema", "uniform"])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_averages_accumulation_and_carried_state(averaging, accumulate, tmp_path):
    config = settings(
        averaging=averaging,
        average_from=1,
        average_decay=0.8,
        accumulate=accumulate,
        clip_norm=0.7,
        optimizer={"rate": 0.05, "weight_decay": 0.01},
    )
    # Losses that raise: after a crash the updates since the last checkpoint are made again.
    crashes = (6, 3, 2) if accumulate == 1 else (8, 2)
    assert_resumes_equal(config, tmp_path, *crashes, carries=True)


@pytest.mark.parametrize("crashes", [(13,), (9, 3, 2), (20,)])
def test_triggered_averages(crashes, tmp_path):
    config = settings(
        averaging="triggered",
        average_patience=0,
        epochs=6,
        evaluate_every=2,
        optimizer={"name": "sgd", "rate": 0.3},  # so fast that it soon gets worse
    )
    assert_resumes_equal(config, tmp_path, *crashes, carries=True)
    kept = read_checkpoint(tmp_path / "whole" / "last.safetensors").values
    assert kept["average_triggered"] and kept["average_updates"] > 3


def test_checkpoints_far_apart(tmp_path):
    config = settings(save_every=5, evaluate_every=4, epochs=5, optimizer={"rate": 0.05})
    assert_resumes_equal(config, tmp_path, 9, 6, 2, carries=True)


def test_without_validation(tmp_path):
    assert_resumes_equal(settings(averaging="uniform"), tmp_path, 6, validates=False)


def test_the_learning_rate_falls_as_if_nothing_had_happened(tmp_path):
    scores = [5.0, 6.0, 7.0, 4.0, 5.0]
    config = settings(epochs=5, schedule={"name": "plateau", "patience": 0})
    _, whole = run(config, Points(scores=scores), tmp_path / "whole")
    with pytest.raises(CrashError):
        run(config, Points(scores=scores, crash_at=11), tmp_path / "cut")
    _, found = run(config, Points(scores=scores[2:]), tmp_path / "cut", resume=True)
    assert without_seconds(found.rows) == without_seconds(whole.rows)
    rates = [row["rate"] for row in whole.rows if row["step"] % 4 == 0]
    assert rates == pytest.approx([1e-3, 1e-3, 5e-4, 2.5e-4, 2.5e-4])


@pytest.mark.parametrize(
    ("changes", "options", "reason"),
    [
        ({"max_steps": 5, "epochs": 9}, {}, "max_steps"),
        ({"max_seconds": 1e-9, "epochs": 9}, {}, "max_seconds"),
        ({"patience": 1, "epochs": 9}, {"scores": [1.0, 2.0]}, "patience"),
        ({"epochs": 2}, {}, "epochs"),
    ],
)
def test_a_run_that_was_over_is_not_trained_on(changes, options, reason, tmp_path):
    """The machine may die after the last checkpoint and before the model is saved."""
    config = settings(**changes)
    model, first = run(config, Points(**options), tmp_path)
    again, second = run(config, Points(**options), tmp_path, model=line(5), resume=True)
    assert (second.reason, second.steps) == (reason, first.steps)
    assert same_weights(again, model)
    assert second.rows == first.rows


def test_a_run_that_a_callback_ended_stays_ended(tmp_path):
    config = settings(log_every=1)
    _, first = run(config, None, tmp_path, callbacks=[lambda r: STOP if r.step == 2 else None])
    assert (first.reason, first.steps) == ("callback", 2)
    _, second = run(config, None, tmp_path, resume=True)
    assert (second.reason, second.steps) == ("callback", 2)


def test_resuming_where_nothing_is_begins_anew(tmp_path):
    a, _ = run(settings(), None, tmp_path / "a", resume=True)
    b, _ = run(settings(), None, tmp_path / "b")
    assert same_weights(a, b)


def test_beginning_anew_where_something_is_is_refused(tmp_path):
    run(settings(), None, tmp_path)
    kept = (tmp_path / "last.safetensors").read_bytes()
    with pytest.raises(DataError, match=f"{tmp_path}: holds a run already; resume it"):
        run(settings(), None, tmp_path)
    assert (tmp_path / "last.safetensors").read_bytes() == kept


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 4}, "training.epochs was 3 and is 4"),
        ({"optimizer": {"rate": 0.5}}, "training.optimizer.rate was 0.001 and is 0.5"),
        ({"clip_norm": 1.0}, "training.clip_norm was None and is 1.0"),
        (
            {"seed": 1, "batch": {"batch_size": 3}},
            "training.batch.batch_size was 32 and is 3; training.seed was 7 and is 1",
        ),
    ],
)
def test_changed_settings_are_named(changes, message, tmp_path):
    run(settings(), None, tmp_path)
    with pytest.raises(ConfigError, match=f"settings it began with, but {message}"):
        run(settings(**changes), None, tmp_path, resume=True)


def test_changed_facts_are_named(tmp_path):
    facts = {"model": {"dropout": 0.1, "tied": False}, "vocabulary": "abc"}
    run(settings(), None, tmp_path, facts=facts)
    run(settings(), None, tmp_path, facts=facts, resume=True)
    other = {"model": {"dropout": 0.2}, "vocabulary": "abc"}
    with pytest.raises(
        ConfigError, match=r"model\.dropout was 0.1 and is 0.2; model\.tied was False and is None"
    ):
        run(settings(), None, tmp_path, facts=other, resume=True)


# -- damaged checkpoints -------------------------------------------------------------------------


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def cut_short(path):
    path.write_bytes(path.read_bytes()[:20])


def empty(path):
    path.write_bytes(b"")


def foreign(path):
    save_file({"weight": torch.zeros(3)}, path)


def other_format(path):
    save_file({"model.0.weight": torch.zeros(3)}, path, metadata={"seqloom": '{"format": 99}'})


def no_json(path):
    save_file({"a": torch.zeros(1)}, path, metadata={"seqloom": "{"})


def a_pickle(path):
    path.write_bytes(pickle.dumps(Evil()))


def a_torch_file(path):
    torch.save({"model": torch.zeros(2)}, path)


def the_best_one(path):
    path.write_bytes((path.parent / "best.safetensors").read_bytes())


def a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "is damaged or no checkpoint"),
        (cut_short, "is damaged or no checkpoint"),
        (empty, "is damaged or no checkpoint"),
        (foreign, "must be a checkpoint of format 1, got None"),
        (other_format, "must be a checkpoint of format 1, got 99"),
        (no_json, "is damaged or no checkpoint"),
        (a_pickle, "is damaged or no checkpoint"),
        (a_torch_file, "is damaged or no checkpoint"),
        (the_best_one, "is no checkpoint of this run and model"),
        (a_folder, "is damaged or no checkpoint"),
    ],
    ids=lambda v: getattr(v, "__name__", "message"),
)
def test_damaged_checkpoints_are_refused(damage, message, tmp_path):
    run(settings(), None, tmp_path)
    last = tmp_path / "last.safetensors"
    damage(last)
    with pytest.raises(DataError, match=f"{last}: {message}") as caught:
        run(settings(), None, tmp_path, resume=True)
    assert "\n" not in str(caught.value)


def test_another_model_is_refused(tmp_path):
    run(settings(), None, tmp_path)
    with pytest.raises(DataError, match=r"of this run and model.*size mismatch") as caught:
        run(settings(), None, tmp_path, model=nn.Sequential(nn.Linear(3, 2)), resume=True)
    assert "\n" not in str(caught.value)


def test_no_checkpoint_there(tmp_path):
    with pytest.raises(DataError, match="no such checkpoint; start without resuming"):
        read_checkpoint(tmp_path / "last.safetensors")


@pytest.mark.parametrize("damage", [lambda p: p.unlink(), cut_short, lambda p: p.write_text("{x")])
def test_damaged_metrics_are_refused(damage, tmp_path):
    run(settings(), None, tmp_path)
    damage(tmp_path / "metrics.jsonl")
    with pytest.raises(DataError, match=r"metrics\.jsonl: (is not what the run wrote|must hold)"):
        run(settings(), None, tmp_path, resume=True)


def test_a_checkpoint_comes_back_as_it_went(tmp_path):
    path = tmp_path / "x.safetensors"
    weight = torch.randn(3, 2).T
    tensors = {"model": {"a.b": weight, "tied": weight}, "rng0": {"cpu": torch.get_rng_state()}}
    write_checkpoint(path, Checkpoint(tensors, {"step": 3, "best": {"x": float("inf")}}))
    found = read_checkpoint(path)
    assert torch.equal(found.tensors["model"]["a.b"], weight)
    assert torch.equal(found.tensors["model"]["tied"], weight)
    assert found.tensors["rng0"]["cpu"].dtype == torch.uint8
    assert found.values == {"format": 1, "step": 3, "best": {"x": float("inf")}}


# -- disks that fill up --------------------------------------------------------------------------


@pytest.mark.parametrize("half", [False, True], ids=["nothing", "half"])
def test_a_full_disk_keeps_the_checkpoint_before(half, tmp_path, monkeypatch):
    config = settings()
    with pytest.raises(CrashError):
        run(config, Points(crash_at=4), tmp_path)
    kept = (tmp_path / "last.safetensors").read_bytes()

    def full(tensors, path, metadata=None):
        if half:
            path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "save_file", full)
        with pytest.raises(DataError, match=r"safetensors: cannot be written.*No space left"):
            run(config, None, tmp_path, resume=True)
    assert (tmp_path / "last.safetensors").read_bytes() == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "last.safetensors",
        "metrics.jsonl",
    ]
    run(config, None, tmp_path, resume=True)


def test_a_full_disk_under_the_metrics_is_said(tmp_path, monkeypatch):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    config = dataclasses.replace(settings(), log_every=1)
    tmp_path.joinpath("metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(DataError, match=r"metrics\.jsonl: cannot be written \(No space left"):
        run(config, None, tmp_path)


@pytest.mark.parametrize("as_file", [True, False])
def test_what_a_kill_left_half_written_goes_away(as_file, tmp_path):
    """Also the temporary file that safetensors makes where it writes."""
    left = tmp_path / ".last.safetensors.partial"
    if as_file:
        left.write_bytes(b"half")
    else:
        left.mkdir()
        (left / ".tmpAbCdEf").write_bytes(b"half")
    run(settings(), None, tmp_path)
    assert not list(tmp_path.glob(".*"))


def test_checkpoints_have_the_permissions_of_any_new_file(tmp_path):
    run(settings(), None, tmp_path)
    (tmp_path / "plain").touch()
    mode = (tmp_path / "plain").stat().st_mode
    for name in ("last.safetensors", "best.safetensors", "metrics.jsonl"):
        assert (tmp_path / name).stat().st_mode == mode


def test_an_interrupt_while_writing_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(files_module.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(settings(), None, tmp_path)
    assert not list(tmp_path.glob("*.safetensors")) and not list(tmp_path.glob(".*"))
