"""A small run in a process of its own, to be killed: `python kill_child.py OUT`.

It says on standard output where it is: "step N" after an update is logged, "writing" before a
checkpoint is flushed to disk, "renaming NAME" before a file takes its place. `KILL_PAUSE` seconds
pass after the last two, so that whoever listens has time to strike.
"""

from __future__ import annotations

import os
import pathlib
import random
import sys
import time


def texts(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [
        " ".join(
            rng.choice(words)
            for words in (["the", "a"], ["cat", "dog", "bird", "fish"], ["saw", "ate", "met"])
            for _ in range(rng.randint(1, 2))
        )
        for _ in range(count)
    ]


def say(what: str) -> None:
    os.write(1, f"{what}\n".encode())


def pausing(call, what):
    pause = float(os.environ.get("KILL_PAUSE", "0"))

    def wrapped(*args):
        say(what if what == "writing" else f"{what} {args[-1].name}")
        time.sleep(pause)
        return call(*args)

    return wrapped


def main(out: str) -> None:
    import torch

    import seqloom

    torch.set_num_threads(1)
    os.fsync = pausing(os.fsync, "writing")
    pathlib.Path.replace = pausing(pathlib.Path.replace, "renaming")
    model = seqloom.LanguageModel(
        "lstm",
        hidden_size=16,
        num_layers=2,
        dropout=0.3,
        window=5,
        training={
            "epochs": 4,
            "batch": {"batch_size": 8},
            "optimizer": {"rate": 0.01},
            "schedule": {"name": "plateau"},
            "averaging": "ema",
            "average_decay": 0.9,
            "evaluate_every": 17,
            "save_every": 4,
            "log_every": 1,
            "clip_norm": 1.0,
            "device": "cpu",
            "seed": 3,
        },
    )
    try:
        model.fit(
            texts(300, 1),
            texts(40, 2),
            out,
            resume=True,
            callbacks=[lambda report: say(f"step {report.step}")],
        )
    except seqloom.errors.StoppedError as error:
        say(f"stopped: {error}")
        sys.exit(3)


if __name__ == "__main__":
    main(sys.argv[1])
