"""Running a server: its socket, its signals, its end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import uvicorn

from seqloom.errors import ConfigError
from seqloom.serving.app import create_app
from seqloom.serving.connections import bounded_protocol
from seqloom.serving.models import ServedModel
from seqloom.serving.service import Service
from seqloom.serving.settings import ServeConfig

BACKLOG = 1024


class DrainingServer(uvicorn.Server):
    """uvicorn's server, which drains on SIGTERM or SIGINT, and then ends as if all were done."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals while it runs; they are not raised again."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, answer what was asked, then end."""
        self.service.metrics.add("seqloom_refused_total", 0, reason="draining")
        await super().shutdown(sockets)


def serve(
    models: Sequence[ServedModel],
    config: ServeConfig,
    tell: Callable[[str], object] = lambda _address: None,
) -> None:
    """Serve models until SIGTERM or SIGINT comes; what was asked by then is answered.

    Args:
        models: What `seqloom.serving.models.find_served` found.
        config: The settings.
        tell: Told the address once requests are taken.

    Raises:
        DataError: If a model cannot be loaded.
        ConfigError: If the address cannot be listened on.
    """
    keep_streams_open()
    logging.raiseExceptions = False  # a log that cannot be written is no reason to stop
    asyncio.run(_serve(models, config, tell))


async def _serve(
    models: Sequence[ServedModel], config: ServeConfig, tell: Callable[[str], object]
) -> None:
    listener = bind(config)
    service = Service(models, config)
    try:
        await service.start()
        listener.listen(BACKLOG)  # not before: until then nobody can connect
        settings = uvicorn.Config(
            create_app(service),
            http=bounded_protocol(config.max_connections, config.body_timeout),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=max(1, int(config.body_timeout)),
            timeout_graceful_shutdown=int(config.time_limit) + 1,
        )
        server = DrainingServer(settings, service)
        with suppress(OSError, ValueError):  # nobody may be there to be told
            tell(address_of(listener))
        await server.serve(sockets=[listener])
    finally:
        listener.close()
        await service.close()


def bind(config: ServeConfig) -> socket.socket:
    """A socket that has the address, so that nobody else takes it while models are loaded.

    Raises:
        ConfigError: If the address cannot be listened on.
    """
    try:
        found = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise ConfigError(
            f"host and port must be free to listen on, got {config.host}:{config.port} "
            f"({error.strerror}); choose others"
        ) from None
    listener.setblocking(False)
    return listener


def address_of(listener: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def keep_streams_open() -> None:
    """Give closed standard streams a place, so that no socket takes theirs."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
