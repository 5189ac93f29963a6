"""What the studio asks of the server besides the models' own endpoints."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from seqloom.errors import InputError
from seqloom.serving.app import ERRORS, StrictRoute
from seqloom.serving.errors import ServingError
from seqloom.serving.requests import Text
from seqloom.serving.service import service_of
from seqloom.serving.studio_runs import list_runs, runs_folder
from seqloom.serving.studio_training import find_run, new_place

router = APIRouter(prefix="/studio", route_class=StrictRoute, tags=["studio"])
TRAINING_SECONDS = 1800.0
Name = Annotated[str, Field(min_length=1, max_length=100)]
Size = Annotated[int, Field(ge=1, le=32)]
Seed = Annotated[int, Field(ge=0, lt=1 << 31)]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class StepsRequest(_Asked):
    """What did the gates and states of a cell do over this sentence?"""

    text: Annotated[str, Field(min_length=1, max_length=1000)]
    model: Annotated[Name | None, Field(description="A recurrent language model.")] = None
    layer: Annotated[int, Field(ge=0, le=100)] = 0
    cell: Annotated[Name, Field(description="Without a model: a cell with fresh weights.")] = "lstm"
    hidden_size: Size = 16
    units: Size = 32
    seed: Seed = 0


class FlowRequest(_Asked):
    """How far does a gradient reach back in these cells?"""

    cells: Annotated[list[Name], Field(max_length=20, description="All if empty.")] = []
    distance: Annotated[int, Field(ge=1, le=200)] = 50
    hidden_size: Size = 16
    remember: bool = False
    seed: Seed = 0


class TrainRequest(_Asked):
    """Fit a classifier to a table."""

    table: Annotated[str, Field(min_length=1, max_length=16_000_000, description="CSV or TSV.")]
    text: Name = "text"
    label: Name = "label"
    architecture: Name = "softmax"
    epochs: Annotated[int, Field(ge=1, le=100)] | None = None
    name: Annotated[str, Field(max_length=60)] = "classifier"


class TryRequest(_Asked):
    """Ask a classifier that was trained here."""

    run: Name
    text: Text


async def _ask(request: Request, job: str, model: str | None, values: dict[str, Any]) -> Response:
    found = await service_of(request).ask(job, model, values)
    return Response(found, media_type="application/json")


@router.get("/cells", responses=ERRORS)
async def cells(request: Request) -> Response:
    """The cells there are, with their equations."""
    return await _ask(request, "studio.cells", None, {})


@router.post("/steps", responses=ERRORS)
async def steps(request: Request, body: StepsRequest) -> Response:
    """Gates and states over a sentence, of a model or of a cell with fresh weights."""
    values = body.model_dump(exclude={"model"})
    job = "studio.cell" if body.model is None else "studio.steps"
    return await _ask(request, job, body.model, values)


@router.post("/flow", responses=ERRORS)
async def flow(request: Request, body: FlowRequest) -> Response:
    """The norm of a gradient by distance, for every cell."""
    return await _ask(request, "studio.flow", None, body.model_dump())


@router.get("/runs", responses=ERRORS)
async def runs(request: Request) -> Response:
    """What is known of the runs on this machine."""
    served = [(m.name, Path(m.place)) for m in service_of(request).models if m.place is not None]
    return JSONResponse(await run_in_threadpool(list_runs, served, runs_folder()))


@router.post(
    "/train",
    responses={**ERRORS, 200: {"content": {"text/event-stream": {}}}},
)
async def train(request: Request, body: TrainRequest) -> Response:
    """Fit a classifier to a table; server-sent events tell how it goes.

    Events are `begin`, `step`, and at last `end` or `refused`.
    """
    values = body.model_dump(exclude={"name"})
    try:
        place = await run_in_threadpool(new_place, runs_folder(), body.name)
    except InputError as error:
        raise ServingError(422, "too_many", error.message) from None
    except OSError:
        raise ServingError(
            503, "no_place", "the server has no place to keep a run", retry_after=60
        ) from None
    values["place"] = str(place)
    pieces = service_of(request).apart("studio.train", values, time_limit=TRAINING_SECONDS)
    first = await anext(pieces)
    return StreamingResponse(_events(first, pieces), media_type="text/event-stream")


async def _events(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        yield _event(first)
        async for piece in pieces:
            yield _event(piece)
    except ServingError as error:
        yield b"event: error\ndata: " + error.body() + b"\n\n"


def _event(piece: bytes) -> bytes:
    name = str(json.loads(piece)["event"]).encode()
    return b"event: " + name + b"\ndata: " + piece + b"\n\n"


@router.post("/try", responses=ERRORS)
async def try_run(request: Request, body: TryRequest) -> Response:
    """What a classifier that was trained here says of a text."""
    try:
        place = await run_in_threadpool(find_run, runs_folder(), body.run)
    except InputError:
        raise ServingError(404, "unknown_run", "there is no run of that name") from None
    return await _ask(request, "studio.try", None, {"place": str(place), "text": body.text})
