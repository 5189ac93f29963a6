"""How a recurrence is cut into programs on a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from seqloom.errors import BackendError
from seqloom.kernels.measured import load_table
from seqloom.kernels.triton_products import Form, power

ON_CHIP = 230_000  # bytes a program may have on chip
LOADS = 16  # loads of 16 bytes a thread may have under way
LEAST = 16  # rows and columns of an operand
NARROWEST = 8  # columns of a result
NEAR = 0.6  # how far a measured shape may be, in doublings of rows and units


@dataclass(frozen=True)
class Tiles:
    """How a kernel is cut.

    Args:
        rows: Rows of a program.
        units: Units of a program.
        warps: Its warps.
        chunk: Columns of an operand a product takes at a time.
        looks: Whether programs look for each other's numbers, and do not meet at a barrier.
        held: Chunks of its matrices that a program holds from step to step; others are loaded anew.
        parts: How many programs share a turned product.
        registers: Whether operands are multiplied from registers, and not from on-chip memory.
        stages: How many chunks of operands and matrices are under way at once, where a program
            holds nothing of its matrices; 0 where it does.
    """

    rows: int
    units: int
    warps: int
    chunk: int
    looks: bool = True
    held: int = 1 << 20
    parts: int = 1
    registers: bool = False
    stages: int = 0

    def form(self, size: int, state: int, item: int) -> Form:
        """How products are printed for these tiles, so many units and so wide a first state."""
        if not self.looks:
            return Form(
                size, state, self.chunk, wide=item == 4, parts=self.parts,
                registers=self.registers, stages=self.stages,
            )  # fmt: skip
        pack = max(1, self.rows * self.chunk * item // 16 // (32 * self.warps))
        return Form(size, state, self.chunk, self.warps, pack, wide=item == 4)


@dataclass(frozen=True)
class Job:
    """What is to be cut.

    Args:
        size: Units.
        batch: Rows.
        directions: One or two.
        width: Columns of the widest operand.
        across: Gates side by side in its product, as a power of 2.
        item: Bytes of a number.
        turned: Whether it is the way back.
        direct: Gates with a product of the state.
        late: Gates with a product of something a step computes, and the projection.
        projected: Whether the first state is projected.
    """

    size: int
    batch: int
    directions: int
    width: int
    across: int
    item: int
    turned: bool
    direct: int
    late: int
    projected: bool = False


_too_large: set[tuple[Job, Tiles]] = set()


def set_aside(job: Job, tiles: Tiles) -> None:
    """Do not choose tiles again that turned out too large for the card."""
    _too_large.add((job, tiles))
    choose_tiles.cache_clear()


@cache
def choose_tiles(job: Job, processors: int) -> Tiles:
    """Tiles for a shape: every program of a launch must be at work at once, one a processor.

    Those of a measured shape nearby if they fit, or those that should take the least time.

    Raises:
        BackendError: If there are more rows and units than the processors take at once.
    """
    near = measured_tiles(job)
    able = [t for t in candidates(job, processors) if (job, t) not in _too_large]
    if near is not None and near.stages:
        flowing = streamed(job, processors)
        able = [*able, *(t for t in flowing if t == near and (job, t) not in _too_large)]
    for tiles in able:
        if near is not None and replace(tiles, held=near.held) == near:
            return tiles
    fitting = [
        (cost(job, tiles), tiles.rows, tiles.units, tiles.warps, tiles.chunk, tiles.parts, tiles)
        for tiles in able
    ]
    if not fitting:
        raise BackendError(
            f"{job.batch} rows of {job.size} units in {job.directions} directions are more than "
            f"the {processors} processors of this card take at once; use smaller batches"
        )
    return min(fitting, key=lambda one: one[:-1])[-1]


def measured_tiles(job: Job) -> Tiles | None:
    """The tiles that were best for a shape like this one, if one was measured."""
    best: tuple[float, Tiles] | None = None
    for entry in load_table()["tiles"]:
        other = Job(*entry["job"])
        if replace(job, size=0, batch=0, width=0) != replace(other, size=0, batch=0, width=0):
            continue
        distance = abs(math.log2(job.size / other.size)) + abs(math.log2(job.batch / other.batch))
        if distance <= NEAR and (best is None or distance < best[0]):
            rows, units, warps, chunk, looks, parts, *more = entry["tiles"]
            stages = more[0] if more else 0
            several = job.late > 0 and job.item == 2
            tiles = Tiles(
                rows, units, warps, chunk, looks=looks, held=0 if stages else 1 << 20, parts=parts,
                registers=several and not looks and not stages, stages=stages,
            )  # fmt: skip
            best = distance, tiles
    return None if best is None else best[1]


def candidates(job: Job, processors: int) -> list[Tiles]:
    """The tiles that would run a job."""
    found = []
    for rows in (16, 32, 64, 128):
        for units in (4, 8, 16, 32, 64, 128):
            narrow = units if job.late else units * job.across
            too_few = narrow < NARROWEST or (units > LEAST and units >= 2 * power(job.size))
            if too_few or programs(job, rows, units) > processors:
                continue
            for warps in (4, 8):
                found += _cut(job, rows, units, warps)
        if rows >= job.batch:
            break
    return found


def streamed(job: Job, processors: int) -> list[Tiles]:
    """The tiles that would run a job with nothing of the matrices held: of many rows and units.

    They are chosen where they were measured to be best.
    """
    if job.projected:
        return []
    found = []
    for rows, units, warps, chunk, stages, parts in product(
        (64, 128), (8, 16, 32, 64), (4, 8), (64, 128), (3, 4, 5), (1, 2, 4, 8)
    ):
        if parts > 1 and not (job.turned and job.direct > 1 and job.size % (units * parts) == 0):
            continue
        columns = units * (parts if job.turned else job.across)
        mine = job.width // parts
        narrow = units if job.late else columns
        if (
            programs(job, rows, units) > processors
            or narrow < NARROWEST
            or not 32 <= rows * columns // (32 * warps) <= 128  # sums of a thread
            or (parts > 1 and mine % chunk)
            or mine < stages * chunk
            or units > job.size
        ):
            continue
        if stages * chunk * (rows + columns) * job.item + rows * columns * 4 <= ON_CHIP:
            found.append(
                Tiles(rows, units, warps, chunk, looks=False, held=0, parts=parts, stages=stages)
            )
    return found


def programs(job: Job, rows: int, units: int) -> int:
    """How many programs tiles make."""
    return -(-job.size // units) * -(-job.batch // rows) * job.directions


def _cut(job: Job, rows: int, units: int, warps: int) -> list[Tiles]:
    found = []
    if rows < 64:
        most = LOADS * 16 * 32 * warps // (rows * job.item)
        chunk = max(min(most, power(job.width)), LEAST * warps)
        while chunk >= LEAST * warps:
            room = max(rows * chunk * job.item // 2, warps * rows * units * job.across * 4)
            tiles = Tiles(rows, units, warps, chunk)
            held = _held(job, tiles, room)
            found += [] if held is None else [replace(tiles, held=held)]
            if held is None or held * chunk < max(job.width, job.size if job.late else 0):
                chunk //= 2  # smaller ones may leave room for what is streamed, or hold more
                continue
            break
        return found
    for parts in (1, 2, 4, 8) if job.turned and job.direct > 1 and not job.projected else (1,):
        if warps == 4 or (parts > 1 and job.size % (units * parts)):
            break
        for chunk in (64, 128, 256):
            if chunk <= power(job.width // parts):
                several = job.late > 0 and job.item == 2  # products, more than descriptors fit
                tiles = Tiles(
                    rows, units, warps, chunk, looks=False, parts=parts, registers=several
                )
                room = max(2 * rows * chunk * job.item, rows * units * max(parts, job.across) * 4)
                held = _held(job, tiles, room)
                found += [] if held is None else [replace(tiles, held=held)]
    return found


def _columns(job: Job, tiles: Tiles) -> int:
    """Columns of matrix that a program has of the direct product."""
    if job.turned:
        return tiles.units * tiles.parts * (job.direct > 0)
    return tiles.units * job.across


def _held(job: Job, tiles: Tiles, room: int) -> int | None:
    """Chunks of its matrices that fit beside what else is on chip; None if all is too much."""
    chunk = tiles.chunk * job.item
    direct, late = _columns(job, tiles) * chunk, job.late * tiles.units * chunk
    chunks = -(-job.width // tiles.parts // tiles.chunk)
    late_chunks = -(-job.size // tiles.chunk) if job.late else 0
    most = max(chunks, late_chunks)

    def on_chip(held: int) -> int:
        streamed = 3 * (direct + late) if held < most else 0
        return room + min(held, chunks) * direct + min(held, late_chunks) * late + streamed

    return next((held for held in range(most, -1, -1) if on_chip(held) <= ON_CHIP), None)


def cost(job: Job, tiles: Tiles) -> float:
    """About how long a step takes, in microseconds, fitted to what was measured on an H200.

    Megabytes that all programs read, multiplications and bytes of one program, values of a thread,
    chunks that come one after another.
    """
    rows, warps = tiles.rows, tiles.warps
    count = programs(job, rows, tiles.units)
    if tiles.stages:  # a guess, for what is tried first: all read 5 MB a microsecond, one 0.1 MB
        columns = tiles.units * (tiles.parts if job.turned else job.across)
        each = (rows + columns) * job.width // tiles.parts * job.item / 1e6
        return 3 + max(count * each / 5, each * 10) - 0.1 * tiles.stages
    columns = tiles.units * (job.across if tiles.parts == 1 else tiles.parts)
    width = job.width // tiles.parts
    operand = rows * width * job.item
    traffic = count * operand
    chunks = -(-width // tiles.chunk)
    streamed = max(0, chunks - tiles.held)
    traffic += count * streamed * tiles.chunk * _columns(job, tiles) * job.item
    if tiles.parts > 1:
        traffic += count * rows * tiles.units * tiles.parts * 8
    work = rows * width * columns * job.item / 2e6
    values = max(1.0, rows * tiles.units / (32 * warps))
    if tiles.looks:
        time = 0.75 + 0.12 * traffic / 1e6 + 0.96 * work / math.sqrt(warps / 4)
        time += 1.4 * operand / 1e5 / (warps / 4) + 0.26 * values + 0.07 * (chunks - 1)
        time += 0.5 * streamed
        return time + 0.38 * job.width / 1e3 + 0.54 * (warps == 8) - 0.33 * job.turned
    time = 2.5 + 0.13 * traffic / 1e6 + 0.2 * work + 0.1 * chunks + 0.002 * tiles.chunk
    time += 0.3 * streamed
    return time + (0.5 if job.turned else 0.3) * values
