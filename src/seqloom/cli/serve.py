"""`seqloom serve` and `seqloom studio`: models over HTTP, and the pages to use them with."""

from __future__ import annotations

from typing import Annotated

import typer

from seqloom.cli.output import note

Models = Annotated[
    list[str] | None,
    typer.Argument(
        help="Model directories, NAME=DIRECTORY, shipped models, or the summarizers textrank, "
        "lexrank, tfidf, lead, features. Without any: all shipped models and textrank.",
        show_default=False,
    ),
]
Host = Annotated[
    str, typer.Option(help="The address to listen on; others than loopback need a token.")
]
Port = Annotated[int, typer.Option(help="The port; 0 for a free one.")]
Token = Annotated[
    str | None,
    typer.Option(help="What requests must bring as a bearer token.", envvar="SEQLOOM_TOKEN"),
]
Workers = Annotated[int, typer.Option(help="Processes that hold the models.")]
TABLES = 16 << 20  # bytes of a request of the studio, which takes tables to train on
WAIT = 30.0  # seconds a request of the studio may wait
EXAMPLES = "Example: seqloom serve runs/lstm news=runs/summarizer --workers 2"


def serve(
    models: Models = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    workers: Workers = 1,
    threads: Annotated[int, typer.Option(help="Threads of each worker.")] = 1,
    max_batch: Annotated[int, typer.Option(help="Requests a worker takes at once.")] = 16,
    batch_wait: Annotated[
        float, typer.Option(help="Milliseconds an idle worker waits for more requests.")
    ] = 0.0,
    max_queue: Annotated[int, typer.Option(help="Requests that may wait; more get 429.")] = 64,
    max_wait: Annotated[
        float | None,
        typer.Option(
            help="Milliseconds a request may wait for a worker; more get 429. By default, what "
            "would take 3 times as long as without load gets it.",
            show_default=False,
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(help="Bytes of a request.")] = 1 << 20,
    max_characters: Annotated[int, typer.Option(help="Characters of a request's texts.")] = 100_000,
    max_connections: Annotated[int, typer.Option(help="Connections that may be open.")] = 512,
    time_limit: Annotated[float, typer.Option(help="Seconds a request may take.")] = 30.0,
    body_timeout: Annotated[
        float, typer.Option(help="Seconds for a request to arrive, and an answer to be read.")
    ] = 10.0,
) -> None:
    """Serve models over HTTP until SIGTERM, which lets running requests end."""
    _run(
        models,
        open_browser=False,
        host=host,
        port=port,
        token=token,
        workers=workers,
        threads=threads,
        max_batch=max_batch,
        batch_wait=batch_wait / 1000,
        max_queue=max_queue,
        max_wait=None if max_wait is None else max_wait / 1000,
        max_body=max_body,
        max_characters=max_characters,
        max_connections=max_connections,
        time_limit=time_limit,
        body_timeout=body_timeout,
    )


def studio(
    models: Models = None,
    port: Port = 8000,
    workers: Workers = 1,
    browser: Annotated[bool, typer.Option(help="Whether to open a browser.")] = True,
) -> None:
    """Open the studio in a browser, with these models or the shipped ones."""
    own = {"max_wait": WAIT, "max_body": TABLES}  # one person asks, and would rather wait
    _run(models, open_browser=browser, port=port, workers=workers, **own)


def _run(models: list[str] | None, *, open_browser: bool, **settings: object) -> None:
    from importlib.util import find_spec

    from seqloom.errors import BackendError
    from seqloom.serving.settings import ServeConfig

    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            raise BackendError(f"serving needs {package}; pip install 'seqloom[serve]'")
    from seqloom.serving.models import find_served
    from seqloom.serving.server import serve as run_server

    config = ServeConfig(**settings)  # type: ignore[arg-type]
    served = find_served(models or [])

    def tell(address: str) -> None:
        names = ", ".join(model.name for model in served)
        note(f"seqloom serves {names} at {address}")
        if open_browser:
            import webbrowser

            webbrowser.open(address)

    run_server(served, config, tell)
