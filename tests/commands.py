"""The command line, in a process of its own or in this one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from unittest import mock

from seqloom.cli import main

SCRIPT = str(Path(sys.executable).with_name("seqloom"))


def start_command(*arguments, **options):
    """Run `seqloom` as a shell starts it, which takes seconds where a model is used."""
    return subprocess.run(
        [SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )


def call_command(*arguments, input="", cwd="."):
    """The same in this process, for what does not depend on how it is started."""
    command = [SCRIPT, *map(str, arguments)]
    with tempfile.TemporaryFile() as given, ExitStack() as undone:
        given.write(input.encode())
        given.seek(0)
        printed = [undone.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
        with chdir(cwd), _streams(given, *printed), mock.patch.object(sys, "argv", command):
            status = _status()
        texts = []
        for stream in printed:
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(command, status, *texts)


def _status():
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0


@contextmanager
def _streams(*files):
    """Let the three standard streams be these files, for Python and for the system."""
    kept = [os.dup(number) for number in range(3)]
    modes = ("r", "w", "w")
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        with ExitStack() as opened:
            for number, name in enumerate(("stdin", "stdout", "stderr")):
                stream = opened.enter_context(
                    open(number, modes[number], encoding="utf-8", closefd=False)
                )
                opened.enter_context(mock.patch.object(sys, name, stream))
            yield
    finally:
        for number, copy in enumerate(kept):
            os.dup2(copy, number)
            os.close(copy)
