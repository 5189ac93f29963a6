"""Every schedule by hand."""

from __future__ import annotations

import math

import pytest

from seqloom.errors import ConfigError
from seqloom.training import ScheduleConfig
from seqloom.training.schedules import Progress, Schedule


def factors(config: ScheduleConfig, points: list[Progress]) -> list[float]:
    schedule = Schedule(config)
    return [schedule.factor(point) for point in points]


def epochs(count: int) -> list[Progress]:
    return [Progress(10 * epoch, epoch, epoch / count) for epoch in range(count)]


def steps(count: int) -> list[Progress]:
    return [Progress(step, 0, step / count) for step in range(count)]


def test_constant_with_and_without_warmup():
    assert factors(ScheduleConfig(), steps(3)) == [1, 1, 1]
    assert factors(ScheduleConfig(warmup=4), steps(6)) == [0.25, 0.5, 0.75, 1, 1, 1]


def test_step_is_the_decay_of_zaremba():
    """Small model: rate 1 for 4 epochs, then halved every epoch."""
    config = ScheduleConfig(name="step", factor=0.5, after=4)
    assert factors(config, epochs(7)) == [1, 1, 1, 1, 0.5, 0.25, 0.125]


def test_step_every_few_epochs():
    config = ScheduleConfig(name="step", factor=0.1, every=2)
    assert factors(config, epochs(6)) == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    config = ScheduleConfig(name="step", factor=0.1, every=2, after=1, floor=0.05)
    assert factors(config, epochs(5)) == pytest.approx([1, 0.1, 0.1, 0.05, 0.05])


def test_step_begins_with_the_rate_itself():
    assert factors(ScheduleConfig(name="step"), epochs(3)) == [1, 0.5, 0.25]


def test_cosine_begins_at_the_rate_and_ends_at_the_floor():
    config = ScheduleConfig(name="cosine", floor=0.2)
    points = [Progress(0, 0, share) for share in (0, 0.25, 0.5, 1, 1.5)]
    quarter = 0.2 + 0.8 * (1 + math.cos(math.pi / 4)) / 2
    assert factors(config, points) == pytest.approx([1, quarter, 0.6, 0.2, 0.2])
    assert factors(ScheduleConfig(name="cosine"), points)[-1] == 0


def test_cosine_after_a_warmup():
    config = ScheduleConfig(name="cosine", warmup=2)
    points = [Progress(0, 0, 0.0), Progress(1, 0, 0.5), Progress(2, 0, 1.0)]
    assert factors(config, points) == pytest.approx([0.5, 0.5, 0.0])


def test_noam_is_the_formula_over_its_peak():
    w = 4
    found = factors(ScheduleConfig(name="noam", warmup=w), steps(9))
    formula = [min(t**-0.5, t * w**-1.5) for t in range(1, 10)]
    assert found == pytest.approx([value / w**-0.5 for value in formula])
    assert max(found) == found[w - 1] == 1


def test_plateau_waits_for_patience():
    schedule = Schedule(ScheduleConfig(name="plateau", factor=0.5, patience=1, floor=0.3))
    found = []
    for improved in (True, False, False, False, True, False, False, False, False):
        schedule.observe(improved=improved)
        found.append(schedule.factor(Progress(0, 0, 0)))
    assert found == [1, 1, 0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3]


def test_plateau_comes_back_from_a_checkpoint():
    one = Schedule(ScheduleConfig(name="plateau", patience=1))
    for improved in (True, False, False, False):
        one.observe(improved=improved)
    other = Schedule(one.config)
    other.restore(one.state())
    one.observe(improved=False)
    other.observe(improved=False)
    assert one.factor(Progress(0, 0, 0)) == other.factor(Progress(0, 0, 0)) == 0.25


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "noam"}, "'noam' needs warmup steps, got warmup=0"),
        ({"warmup": -1}, "must not be negative.*got -1, 0, 0 and 1"),
        ({"every": 0}, "every at least 1, got 0, 0, 0 and 0"),
        ({"patience": -2}, "got 0, 0, -2 and 1"),
        ({"factor": 0.0}, r"factor must lie in \(0, 1\].*got 0.0 and 0.0"),
        ({"floor": 1.5}, "got 0.5 and 1.5"),
    ],
)
def test_bad_settings_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        ScheduleConfig(**values)
