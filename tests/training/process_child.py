"""What each of several processes does in `test_processes.py`: `python process_child.py OUT`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from toy import CrashError, Points, line, run, same_weights, without_seconds

from seqloom import LanguageModel
from seqloom.errors import StoppedError, TrainingError
from seqloom.training import STOP, TrainConfig
from seqloom.training.checkpoint import read_checkpoint

TEXTS = ["the cat sat on the mat", "a dog ran", "the bird saw a fish", "a cat ate"] * 6
VALID = ["the dog sat", "a fish ran on the mat"]


def settings(**changes) -> TrainConfig:
    return TrainConfig(**{"epochs": 3, "log_every": 1, "device": "cpu", "save_every": 1} | changes)


def language_model(out: Path | None) -> LanguageModel:
    """Five lanes, so that two processes have uneven shares."""
    training = {
        "epochs": 2,
        "batch": {"batch_size": 5},
        "optimizer": {"name": "sgd", "rate": 0.5},
        "clip_norm": 1.0,
        "log_every": 1,
        "device": "cpu",
    }
    model = LanguageModel("lstm", hidden_size=8, num_layers=1, window=4, training=training)
    return model.fit(TEXTS, VALID, out)


class BadOnRankOne(Points):
    def loss(self, model, batch):
        self.bad_at = 5 if RANK == 1 else None
        return super().loss(model, batch)


def check_resume(out: Path) -> None:
    config = settings()
    whole, expected = run(config, Points(carries=True), out / "whole", model=line(RANK, 0.3))
    try:
        run(config, Points(carries=True, crash_at=7), out / "cut", model=line(RANK, 0.3))
    except CrashError:
        pass
    else:
        raise AssertionError
    cut, found = run(config, Points(carries=True), out / "cut", model=line(7, 0.3), resume=True)
    assert same_weights(cut, whole)
    if RANK == 0:  # which alone has the file
        assert without_seconds(found.rows) == without_seconds(expected.rows)


def check_signal_to_one(out: Path) -> None:
    def strike(report):
        if report.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    try:
        run(settings(), None, out / "signal", callbacks=[strike])
    except StoppedError as error:
        expected = "SIGTERM" if RANK == 0 else "another process"
        assert f"stopped by {expected} at update 3" in str(error), error
    else:
        raise AssertionError


def check_stop_by_callback(out: Path) -> None:
    calls = []

    def stop(report):
        calls.append(report.step)
        return STOP if report.step == 2 else None

    _, result = run(settings(), None, out / "callback", callbacks=[stop])
    assert (result.reason, result.steps) == ("callback", 2)
    assert calls == ([1, 2] if RANK == 0 else [])


def check_bad_loss_in_one(out: Path) -> None:
    try:
        run(settings(), BadOnRankOne(), out / "bad")
    except TrainingError as error:
        assert "at update 5" in str(error), error
    else:
        raise AssertionError
    kept = read_checkpoint(out / "bad" / "last.safetensors")
    assert kept.values["step"] == 4
    assert all(torch.isfinite(w).all() for w in kept.tensors["model"].values())


def main(out: Path) -> None:
    torch.set_num_threads(1)
    written: list[str] = []

    def watch(event, args):
        changes = event in {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate"}
        writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
        if (changes or writes) and str(args[0]).startswith(str(out)):
            written.append(f"{event} {args[0]}")

    if RANK:
        sys.addaudithook(watch)
    # Every process begins elsewhere: the weights of the main one count.
    model, result = run(settings(clip_norm=1.0), None, out / "toy", model=line(RANK))
    fitted = language_model(out / "model")
    check_resume(out)
    check_signal_to_one(out)
    check_stop_by_callback(out)
    check_bad_loss_in_one(out)
    assert not written, written
    weights = {f"toy.{k}": v for k, v in model.state_dict().items()}
    weights |= {f"lm.{k}": v for k, v in fitted.model_.state_dict().items()}
    losses = torch.tensor([row["loss"] for row in result.rows], dtype=torch.float64)
    save_file(weights | {"losses": losses}, out.parent / f"rank{RANK}.safetensors")


if __name__ == "__main__":
    RANK = int(os.environ["RANK"])
    main(Path(sys.argv[1]))
