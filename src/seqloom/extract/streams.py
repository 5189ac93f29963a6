"""Work on a stream of texts on several threads, in order and with little of it in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from seqloom.compiled import cores
from seqloom.errors import ConfigError

Item = TypeVar("Item")
Result = TypeVar("Result")
AHEAD = 4  # items a thread that are waiting or done before their turn


def work_in_order(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int | None = None,
    is_long: Callable[[Item], bool] = lambda _: True,
) -> Iterator[Result]:
    """Yield the result of each item in turn, while others are worked on.

    Args:
        work: What to do; it runs side by side as far as it releases the GIL.
        items: Read as they are needed.
        threads: How many to work on at once; as many as there are cores if left out.
        is_long: Whether an item is worth handing to a thread; others are worked on at once.
    """
    count = cores() if threads is None else threads
    if count < 1:
        raise ConfigError(f"threads must be at least 1, got {threads}")
    if count == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(count) as pool:
        for item in items:
            if not is_long(item) and not waiting:
                yield work(item)
                continue
            waiting.append(pool.submit(work, item))
            if len(waiting) > AHEAD * count or not is_long(item):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
