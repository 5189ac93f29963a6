"""What may be set of a server: where it listens, how it works, and what it refuses."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from seqloom.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ServeConfig:
    """Settings of a server.

    Args:
        host: The address to listen on. Any but a loopback address needs a token.
        port: The port; 0 for one that is free.
        token: What a request must bring as `Authorization: Bearer TOKEN`, if anything.
        workers: How many processes hold the models.
        threads: Threads of each.
        max_batch: How many requests a worker takes at once.
        batch_wait: Seconds a request may wait for others to join it while a worker is idle.
        max_queue: How many requests may wait; more are refused.
        max_wait: Seconds a request may wait for a worker; what would wait longer, by the time that
            batches take, is refused. None lets the server choose: a request is answered within 3
            times what the slowest kind of request takes alone, as measured, or refused.
        max_body: Bytes of a request's body.
        max_characters: Characters of the texts of a request.
        max_connections: How many connections may be open.
        time_limit: Seconds a request may take, waiting included; a batch that takes longer has its
            worker ended.
        body_timeout: Seconds for a request to arrive, and for an answer to be taken.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    workers: int = 1
    threads: int = 1
    max_batch: int = 16
    batch_wait: float = 0.0
    max_queue: int = 64
    max_wait: float | None = None
    max_body: int = 1 << 20
    max_characters: int = 100_000
    max_connections: int = 512
    time_limit: float = 30.0
    body_timeout: float = 10.0

    def __post_init__(self) -> None:
        for name in ("workers", "threads", "max_batch", "max_queue", "max_connections"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("max_wait", "max_body", "max_characters", "time_limit", "body_timeout"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} must be above 0, got {value}")
        if self.batch_wait < 0 or not 0 <= self.port <= 65535:
            raise ConfigError(
                "batch_wait must not be negative and port lie between 0 and 65535, got "
                f"{self.batch_wait} and {self.port}"
            )
        if self.token is not None and not self._is_sound(self.token):
            raise ConfigError("token must be visible ASCII characters, got something else")
        if self.token is None and not self.is_loopback:
            raise ConfigError(
                f"an address that others can reach needs a token, got host={self.host!r} without; "
                "give --token, or set SEQLOOM_TOKEN"
            )

    @staticmethod
    def _is_sound(token: str) -> bool:
        return bool(token) and all("!" <= character <= "~" for character in token)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
