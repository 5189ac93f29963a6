"""The loop against hand computations, and what it promises besides."""

from __future__ import annotations

import importlib.util
import json
import math
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close
from toy import CrashError, Points, line, run, same_weights

from seqloom.config import from_dict
from seqloom.errors import BackendError, ConfigError, TrainingError
from seqloom.training import (
    STOP,
    LossOutput,
    OptimizerConfig,
    StepReport,
    TrainConfig,
    train,
)
from seqloom.training import loop as loop_module
from seqloom.training import report as report_module
from seqloom.training.checkpoint import read_checkpoint
from seqloom.training.optimizers import WeightAverage
from seqloom.training.report import Bar, Lines, Silent, choose_display, describe, draw_curve


@pytest.fixture(autouse=True)
def no_pictures(request, monkeypatch):
    """They take longer than all the rest."""
    if "picture" not in request.node.name:
        monkeypatch.setattr(loop_module, "draw_curve", lambda rows, path: False)


def settings(**changes) -> TrainConfig:
    base = {"epochs": 1, "device": "cpu", "optimizer": {"name": "sgd", "rate": 0.1}, "log_every": 1}
    return from_dict(TrainConfig, base | changes)


def gradient(model: nn.Module, x, y) -> dict[str, torch.Tensor]:
    """Of the mean squared error of all points, by the formula."""
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    wrong = 2 * (x @ model[0].weight.detach().T + model[0].bias.detach() - y)  # (N, 1)
    return {"0.weight": wrong.T @ x / len(x), "0.bias": wrong.mean(0)}


# -- updates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(10,), (4, 1, 3, 2), (1, 9), (0, 7, 3)])
def test_uneven_batches_accumulated_equal_one_big_batch(sizes):
    points = Points(sizes)
    start = line()
    expected = gradient(start, points.x, points.y)
    config = settings(accumulate=len(sizes), averaging="none")
    model, result = run(config, Points(sizes, validates=False))
    for name, weight in model.named_parameters():
        assert_close(weight.data, start.get_parameter(name).data - 0.1 * expected[name])
    assert result.steps == 1
    x, y = torch.from_numpy(points.x), torch.from_numpy(points.y)
    assert result.rows[0]["loss"] == pytest.approx((start(x) - y).square().mean().item())


def test_a_last_group_that_is_short_is_averaged_by_its_own_count():
    points = Points((4, 1, 3, 2), validates=False)
    order = np.random.default_rng(0).permutation(4)
    model = line()
    for group in (order[:3], order[3:]):
        index = np.concatenate([np.arange(points.edges[i], points.edges[i + 1]) for i in group])
        step = gradient(model, points.x[index], points.y[index])
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.sub_(0.1 * step[name])
    trained, result = run(settings(accumulate=3), points)
    assert result.steps == 2
    for a, b in zip(trained.parameters(), model.parameters(), strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("norm", [0.5, 1e9])
def test_clip_norm_by_hand(norm):
    points, start = Points((10,), validates=False), line()
    step = gradient(start, points.x, points.y)
    length = math.sqrt(sum(float(g.square().sum()) for g in step.values()))
    model, _ = run(settings(clip_norm=norm), points)
    for name, weight in model.named_parameters():
        expected = start.get_parameter(name) - 0.1 * step[name] * min(1, norm / length)
        assert_close(weight, expected, rtol=1e-5, atol=1e-8)  # torch divides by the norm + 1e-6


def test_clip_value_by_hand():
    points, start = Points((10,), validates=False), line()
    step = gradient(start, points.x, points.y)
    model, _ = run(settings(clip_value=0.3), points)
    assert any((g.abs() > 0.3).any() for g in step.values())
    for name, weight in model.named_parameters():
        assert_close(weight, start.get_parameter(name) - 0.1 * step[name].clamp(-0.3, 0.3))


def test_weight_decay_is_added_to_the_gradient():
    points, start = Points((10,), validates=False), line()
    step = gradient(start, points.x, points.y)
    optimizer = {"name": "sgd", "rate": 0.1, "weight_decay": 0.2}
    model, _ = run(settings(optimizer=optimizer), points)
    for name, weight in model.named_parameters():
        old = start.get_parameter(name)
        assert_close(weight, old - 0.1 * (step[name] + 0.2 * old))


def test_adamw_decays_apart_from_the_gradient():
    points, start = Points((10,), validates=False), line()
    step = gradient(start, points.x, points.y)
    optimizer = {"name": "adamw", "rate": 0.1, "weight_decay": 0.2}
    model, _ = run(settings(optimizer=optimizer), points)
    for name, weight in model.named_parameters():
        old = start.get_parameter(name)
        # The first step of Adam goes by the sign: m / sqrt(v) = g / |g|.
        assert_close(weight, old * (1 - 0.1 * 0.2) - 0.1 * step[name].sign(), rtol=1e-5, atol=1e-6)


def test_momentum_by_hand():
    points, model = Points((10,), validates=False), line()
    velocity = {name: torch.zeros_like(w) for name, w in model.named_parameters()}
    for _ in range(3):
        step = gradient(model, points.x, points.y)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                velocity[name] = 0.5 * velocity[name] + step[name]
                weight.sub_(0.1 * velocity[name])
    optimizer = {"name": "momentum", "rate": 0.1, "momentum": 0.5}
    trained, _ = run(settings(epochs=3, optimizer=optimizer), points)
    for a, b in zip(trained.parameters(), model.parameters(), strict=True):
        assert_close(a, b)


def test_lbfgs_finds_the_least_squares_solution():
    points = Points((10,), validates=False)
    model, result = run(settings(optimizer={"name": "lbfgs", "rate": 1.0}), points)
    inputs = np.hstack([points.x, np.ones((10, 1))])
    solution, *_ = np.linalg.lstsq(inputs, points.y, rcond=None)
    found = torch.cat([model[0].weight[0], model[0].bias]).detach().numpy()
    np.testing.assert_allclose(found, solution[:, 0], atol=1e-7)
    assert result.steps == 1


def test_lbfgs_sees_the_same_carried_state_every_time():
    """A line search that moves what it starts from would not find a minimum."""
    points = Points((5, 5), validates=False, carries=True)
    run(settings(optimizer={"name": "lbfgs", "rate": 1.0}), points)
    assert points.losses > 4

    class Watching(Points):
        memories: list[object]

        def loss(self, model, batch):
            self.memories.append((tuple(batch.index), None if self.memory is None else 1.0))
            return super().loss(model, batch)

    watching = Watching((5, 5), validates=False, carries=True)
    watching.memories = []
    run(settings(optimizer={"name": "lbfgs", "rate": 1.0}), watching)
    first = watching.memories[0][0]
    assert {memory for index, memory in watching.memories if index == first} == {None}


def test_frozen_weights_stay():
    model = line()
    model[0].bias.requires_grad_(False)
    before = model[0].bias.clone()
    run(settings(averaging="ema", clip_norm=1.0), model=model)
    assert torch.equal(model[0].bias, before)


def test_rates_follow_the_schedule():
    config = settings(epochs=3, schedule={"name": "step", "after": 2, "factor": 0.5, "warmup": 2})
    _, result = run(config)
    rates = [row["rate"] for row in result.rows]
    assert rates == pytest.approx([0.05] + [0.1] * 7 + [0.05] * 4)


def test_cosine_over_max_steps_and_over_epochs():
    config = settings(epochs=100, max_steps=4, schedule={"name": "cosine"})
    _, result = run(config)
    shares = [(1 + math.cos(math.pi * k / 4)) / 2 for k in range(4)]
    assert [row["rate"] for row in result.rows] == pytest.approx([0.1 * s for s in shares])
    _, result = run(settings(schedule={"name": "cosine"}))
    assert [row["rate"] for row in result.rows] == pytest.approx([0.1 * s for s in shares])


# -- when to stop, what to keep ------------------------------------------------------------------


def test_early_stopping_counts_evaluations_without_improvement():
    scores = [5.0, 4.0, 4.5, 4.2, 1.0]
    _, result = run(settings(epochs=5, patience=2), Points(scores=scores))
    assert (result.reason, result.epochs, result.best_step) == ("patience", 4, 8)
    assert result.metrics == {"error": 4.0}


@pytest.mark.parametrize("with_files", [False, True])
def test_the_best_weights_are_in_place_at_the_end(with_files, tmp_path):
    points = Points(scores=[5.0, 2.0, 3.0])
    model, result = run(settings(epochs=3), points, tmp_path / "x" if with_files else None)
    assert result.best_step == 8
    assert torch.equal(model[0].weight, points.seen[1])
    assert not torch.equal(points.seen[1], points.seen[2])
    assert not model.training
    if with_files:
        best = read_checkpoint(tmp_path / "x" / "best.safetensors")
        assert torch.equal(best.tensors["model"]["0.weight"], points.seen[1])
        assert best.values["step"] == 8
        last = read_checkpoint(tmp_path / "x" / "last.safetensors")
        assert torch.equal(last.tensors["model"]["0.weight"], points.seen[2])


def test_higher_may_be_better():
    points = Points(scores=[1.0, 3.0, 2.0])
    points.higher_is_better = True
    _, result = run(settings(epochs=3), points)
    assert (result.best_step, result.metrics) == (8, {"error": 3.0})


def test_another_metric_than_the_objectives_own_has_its_own_direction():
    class Judged(Points):
        def evaluate(self, model):
            error = super().evaluate(model)["error"]
            return {"error": error, "accuracy": 9 - error, "naive_mae": error + 1}

    for own, name, best in (("error", "accuracy", 8), ("accuracy", "naive_mae", 8)):
        points = Judged(scores=[3.0, 1.0, 2.0])
        points.metric, points.higher_is_better = own, own == "accuracy"
        _, result = run(settings(epochs=3, metric=name), points)
        assert (result.best_step, result.metrics["error"]) == (best, 1.0)


def test_a_metric_that_is_no_number_is_never_the_best():
    _, result = run(settings(epochs=4), Points(scores=[math.nan, 3.0, math.nan, 2.0]))
    assert (result.best_step, result.metrics) == (16, {"error": 2.0})
    _, result = run(settings(epochs=2), Points(scores=[math.nan, math.nan]))
    assert result.metrics == {}


def test_an_infinite_metric_can_be_improved_on():
    _, result = run(settings(epochs=2), Points(scores=[math.inf, 3.0]))
    assert result.metrics == {"error": 3.0}


def test_max_steps_ends_in_the_middle_of_an_epoch_with_an_evaluation():
    points = Points()
    _, result = run(settings(epochs=9, max_steps=6), points)
    assert (result.reason, result.steps, result.epochs) == ("max_steps", 6, 1)
    assert points.evaluations == 2


def test_max_seconds_ends_with_an_evaluation_after_the_first_update_beyond_it():
    points = Points()
    _, result = run(settings(epochs=9, max_seconds=1e-9), points)
    assert (result.reason, result.steps, points.evaluations) == ("max_seconds", 1, 1)
    _, result = run(settings(epochs=1, max_seconds=1e9), Points())
    assert result.reason == "epochs"


def test_evaluate_every_counts_updates():
    points = Points()
    _, result = run(settings(epochs=2, evaluate_every=3), points)
    assert [row["step"] for row in result.rows if "error" in row] == [3, 6, 8]


def test_callbacks_see_reports_and_can_stop():
    reports = []

    def watch(report):
        reports.append(report)
        return STOP if report.step == 3 else None

    _, result = run(settings(epochs=9), callbacks=[watch, lambda report: None])
    assert (result.reason, result.steps) == ("callback", 3)
    assert [report.step for report in reports] == [1, 2, 3]
    assert reports[0].share == pytest.approx(1 / 36)
    with pytest.raises(AttributeError):
        reports[0].step = 5


def test_an_unknown_metric_names_the_known_ones():
    with pytest.raises(ConfigError, match=r"unknown metric 'eror'; did you mean 'error'"):
        run(settings(metric="eror"))


def test_averaged_weights_are_evaluated_and_kept():
    for kind, decay in (("ema", 0.9), ("uniform", 0.5)):
        points = Points((10,))
        weights = []

        def watch(model=None, weights=weights):
            weights.append(model[0].weight.detach().clone())

        model = line()
        hook = lambda report, model=model, watch=watch: watch(model)  # noqa: E731
        run(
            settings(epochs=4, averaging=kind, average_decay=decay),
            points,
            model=model,
            callbacks=[hook],
        )
        mean = weights[0]
        for k, weight in enumerate(weights[1:], start=2):
            share = 0.1 if kind == "ema" else 1 / k
            mean = (1 - share) * mean + share * weight
        assert_close(points.seen[-1], mean)
        assert_close(model[0].weight.data, mean)  # the error falls, so the last one is the best
        assert not torch.allclose(weights[-1], mean)


def test_uniform_averaging_waits_for_its_epoch():
    points = Points((10,))
    weights = []
    model = line()
    run(
        settings(epochs=4, averaging="uniform", average_from=2),
        points,
        model=model,
        callbacks=[lambda report: weights.append(model[0].weight.detach().clone())],
    )
    assert torch.equal(points.seen[1], weights[1])
    assert_close(points.seen[3], (weights[2] + weights[3]) / 2)


def test_without_validation_the_average_is_kept():
    model, _ = run(settings(averaging="uniform"), Points((10,), validates=False))
    plain, _ = run(settings(), Points((10,), validates=False))
    assert same_weights(model, plain)  # the mean of one update
    model, _ = run(settings(averaging="uniform"), Points(validates=False))
    plain, _ = run(settings(), Points(validates=False))
    assert not same_weights(model, plain)


def test_an_average_gives_the_weights_back_even_after_an_error():
    model = line()
    average = WeightAverage(model, "ema", 0.9)
    average.update()
    with torch.no_grad():
        model[0].weight += 1
    before = model[0].weight.clone()
    with pytest.raises(CrashError), average.applied():
        assert not torch.equal(model[0].weight, before)
        raise CrashError
    assert torch.equal(model[0].weight, before)


# -- numbers that are none -----------------------------------------------------------------------


@pytest.mark.parametrize("averaging", ["none", "ema"])
def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_state(averaging, tmp_path):
    config = settings(epochs=3, save_every=1, averaging=averaging)
    with pytest.raises(
        TrainingError,
        match=rf"loss is not finite at update 7 \(learning rate 0.1\).*kept in {tmp_path}.*"
        "training.clip_norm",
    ):
        run(config, Points(bad_at=7), tmp_path)
    kept = read_checkpoint(tmp_path / "last.safetensors")
    assert kept.values["step"] == 6
    assert all(torch.isfinite(w).all() for w in kept.tensors["model"].values())
    assert not list(tmp_path.glob(".*"))
    run(config, Points(), tmp_path, resume=True)  # and it goes on


def test_a_bad_first_loss_says_that_nothing_was_kept(tmp_path):
    for place in (None, tmp_path):
        with pytest.raises(TrainingError, match=r"at update 1 .*; nothing was kept"):
            run(settings(), Points(bad_at=1), place)


class Exploding(Points):
    """A finite loss whose gradient is not: the square root at zero."""

    def loss(self, model, batch):
        output = super().loss(model, batch)
        if self.losses == 3:
            zero = (model[0].weight * 0).sum()
            return LossOutput(output.total + zero.sqrt(), output.items)
        return output


def test_weights_that_are_not_finite_are_never_kept(tmp_path):
    with pytest.raises(TrainingError, match="weights are not finite at update 3"):
        run(settings(save_every=1), Exploding(), tmp_path)
    kept = read_checkpoint(tmp_path / "last.safetensors")
    assert kept.values["step"] == 2
    assert all(torch.isfinite(w).all() for w in kept.tensors["model"].values())


def test_an_evaluation_never_sees_weights_that_are_not_finite(tmp_path):
    points = Exploding()
    with pytest.raises(TrainingError, match="weights are not finite at update 3"):
        run(settings(evaluate_every=3), points, tmp_path)
    assert points.evaluations == 0


# -- what it tells -------------------------------------------------------------------------------


def test_the_lines_of_the_metrics_file(tmp_path):
    _, result = run(settings(epochs=2, log_every=3), Points(), tmp_path)
    rows = [json.loads(text) for text in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows == result.rows
    assert [row["step"] for row in rows] == [3, 4, 6, 8]
    assert [row["epoch"] for row in rows] == [0, 1, 1, 2]
    assert all(row.keys() >= {"step", "epoch", "loss", "rate", "seconds"} for row in rows)
    assert ["error" in row for row in rows] == [False, True, False, True]


def test_the_reported_loss_is_the_mean_over_items_since_the_last_report():
    points = Points(validates=False)
    model = line()
    losses = []
    for batch in points.batches(0, 0, rank=0, world_size=1):
        x, y = (torch.from_numpy(batch.values[name]) for name in "xy")
        losses.append(((model(x) - y).square().sum().item(), len(x)))
    tiny = {"name": "sgd", "rate": 1e-12}
    _, result = run(settings(log_every=3, optimizer=tiny), points)
    first = sum(total for total, _ in losses[:3]) / sum(count for _, count in losses[:3])
    assert result.rows[0]["loss"] == pytest.approx(first)
    assert result.rows[1]["loss"] == pytest.approx(losses[3][0] / losses[3][1])


def test_lines_are_spaced_and_evaluations_always_shown(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(report_module.time, "monotonic", lambda: now[0])
    lines = Lines(every=10)
    report = StepReport(1234, 2, 0.5, 3.21987, 0.001, 5678.9, 3723.4)
    for seconds in (0, 5, 6):
        now[0] += seconds
        lines.show(report)
    lines.show(replace(report, metrics={"perplexity": 25.12346}))
    lines.close()
    shown = capsys.readouterr().err.splitlines()
    assert shown == [
        "epoch 2  step 1,234  loss 3.2199  rate 1.00e-03  5,679 items/s  01:02:03 left",
        "epoch 2  step 1,234  loss 3.2199  rate 1.00e-03  5,679 items/s  01:02:03 left",
        "epoch 2  step 1,234  loss 3.2199  perplexity 25.1235  rate 1.00e-03  5,679 items/s  "
        "01:02:03 left",
    ]


def test_more_than_a_day_left_is_not_wrapped():
    assert "50:00:01 left" in describe(StepReport(1, 0, 0.1, 1.0, 0.1, 1.0, 180001.0))


def test_displays(capsys):
    assert isinstance(choose_display(), Lines)  # no terminal here
    bar = Bar()
    bar.show(StepReport(1, 0, 0.1, 1.0, 0.1, 1.0, 2.0, {"error": 0.5}))
    bar.close()
    assert "error 0.5000" in capsys.readouterr().err


def test_the_picture_of_a_run(tmp_path):
    run(settings(epochs=2), Points(), tmp_path)
    assert (tmp_path / "learning-curve.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_no_picture_of_nothing_and_of_numbers_that_are_none(tmp_path):
    assert not draw_curve([], tmp_path / "a.png")
    row = {"step": 1, "epoch": 0, "rate": 0.1, "seconds": 1.0, "error": math.inf}
    assert not draw_curve([row], tmp_path / "a.png")
    assert draw_curve([row | {"loss": 1.0}], tmp_path / "b.png")


def test_a_picture_is_drawn_though_a_metric_is_infinite(tmp_path):
    run(settings(epochs=2), Points(scores=[math.inf, math.inf]), tmp_path)
    assert (tmp_path / "learning-curve.png").exists()


@pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is not None, reason="tensorboard is here"
)
def test_tensorboard_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BackendError, match="pip install tensorboard"):
        run(settings(tensorboard=True), Points(), tmp_path)
    assert not (tmp_path / "last.safetensors").exists()


# -- where it runs -------------------------------------------------------------------------------


def test_fp16_on_a_cpu_is_refused():
    with pytest.raises(BackendError, match="'fp16' needs a GPU"):
        run(settings(precision="fp16"))


@pytest.mark.parametrize("device", ["cuda", "cuda:7"])
def test_a_gpu_that_is_not_there_is_refused(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(BackendError, match=f"'{device}' was asked for, but torch sees no GPU"):
        run(settings(device=device))


@pytest.mark.parametrize("device", ["gpu", "mps", "meta", ""])
def test_a_device_that_is_none_is_refused(device):
    with pytest.raises(BackendError, match=rf"must be 'auto', 'cpu'.*got '{device}'"):
        run(settings(device=device))


def test_a_run_in_another_thread_leaves_signals_alone():
    results = []
    thread = threading.Thread(target=lambda: results.append(run(settings())))
    thread.start()
    thread.join()
    assert results[0][1].steps == 4


def test_a_silent_display_says_nothing(capsys):
    train(line(), Points(), settings(), display=Silent())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 0}, "training.epochs must be at least 1, got 0"),
        ({"max_steps": 0}, "training.max_steps must be at least 1, got 0"),
        ({"max_seconds": 0}, "training.max_seconds must be positive, got 0"),
        ({"clip_norm": 0.0}, "training.clip_norm must be positive, got 0.0"),
        ({"clip_value": -1.0}, "training.clip_value must be positive, got -1.0"),
        ({"average_decay": 1.0}, r"average_decay must lie in \(0, 1\), got 1.0"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"optimizer": {"name": "adm"}}, "optimizer.name.*got 'adm'; did you mean 'adam'"),
        ({"optimizer": {"rate": 0.0}}, "optimizer.rate must be positive, got 0.0"),
        ({"optimizer": {"rate": math.nan}}, "optimizer.rate must be positive, got nan"),
        ({"optimizer": {"weight_decay": -0.1}}, "weight_decay must not be negative, got -0.1"),
        ({"optimizer": {"momentum": 1.0}}, r"must lie in \[0, 1\), got 1.0"),
        ({"optimizer": {"betas": [0.9, 1.5]}}, r"got 0.9 and \(0.9, 1.5\)"),
        ({"precision": "fp8"}, "precision.*got 'fp8'"),
        ({"optimiser": {}}, "unknown setting 'optimiser'; did you mean 'optimizer'"),
        ({"epochs": "ten"}, "'epochs' must be a whole number, got 'ten'"),
        ({"optimizer": {"name": "lbfgs"}, "accumulate": 2}, "training.accumulate=2"),
        ({"optimizer": {"name": "lbfgs"}, "clip_norm": 2.0}, "training.clip_norm=2.0"),
        ({"optimizer": {"name": "lbfgs", "weight_decay": 0.1}}, "takes no weight_decay, got 0.1"),
    ],
)
def test_bad_settings_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(TrainConfig, values)


def test_lbfgs_in_several_processes_is_refused(monkeypatch):
    class Several(loop_module.Runtime):
        def __init__(self, device, precision):
            super().__init__(device, precision)
            self.world_size = 2

    monkeypatch.setattr(loop_module, "Runtime", Several)
    with pytest.raises(ConfigError, match="'lbfgs' runs in one process"):
        run(replace(settings(), optimizer=OptimizerConfig(name="lbfgs")))
