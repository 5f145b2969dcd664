"""Cases that wait for the same few seconds of a server, tried at the same time. Each has servers and folders of its own."""

import concurrent.futures
import contextlib
import functools
import pathlib
import time

from . import room, tokens
from .weir import Weir

#: Cases at a time. They wait for nearly all of their time.
AT_A_TIME = 6
#: The most of a server's log that is told where a case fails, in characters.
LOG = 20_000
#: Seconds from the beginning of one to that of the next, where there is room (room.py).
BETWEEN = 0.3


class Case:
    """What a case has: a folder, what it ends when it is over, and the figures that it measures."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.stack = contextlib.ExitStack()
        self.figures: list[str] = []
        self.servers: list[Weir] = []

    def folder(self, name: str) -> pathlib.Path:
        made = self.path / name
        made.mkdir(parents=True)
        return made

    def start(self, *flags, **options) -> Weir:
        """Starts a server, which is checked when the case is over."""
        weir = Weir(*flags, folder=self.folder("weir"), **options)
        self.servers.append(weir)
        self.stack.callback(weir.kill)
        self.stack.callback(weir.stop)
        return weir

    def figure(self, text: str) -> None:
        self.figures.append(text)


class Together:
    """The cases of a file, by name: functions that take a `Case`."""

    def __init__(self):
        self.cases = {}

    def case(self, *values, name: str = ""):
        """Makes a function a case of that name, with these values behind its first argument."""
        def add(function):
            assert (name or function.__name__) not in self.cases, f"two cases are called {name or function.__name__}"
            self.cases[name or function.__name__] = functools.partial(_run, function, values)
            return function

        return add

    def run(self, request, tmp_path_factory) -> dict[str, concurrent.futures.Future]:
        """Runs the cases that are chosen in this file, and returns how each ended. The test of a case asks for it as `name`."""
        chosen = {item.callspec.params["name"] for item in request.session.items
                  if item.path == request.path and "name" in getattr(getattr(item, "callspec", None), "params", {})}
        ended = {}
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            for name, run in self.cases.items():
                if name in chosen:
                    tokens.waited += room.wait()
                    ended[name] = pool.submit(run, Case(tmp_path_factory.mktemp("case")))
                    # Servers and publishers that begin at once take each other's time for it.
                    time.sleep(BETWEEN)
        return ended


def _run(function, values, case: Case) -> list[str]:
    with case.stack:
        try:
            function(case, *values)
        except BaseException as error:
            for server in case.servers:
                error.add_note(server.text()[-LOG:])
            raise
    return case.figures
