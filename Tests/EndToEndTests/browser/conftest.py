"""Fixtures of the browser tests: one browser of each kind per file, and a server with the demo stream."""

import pytest

import browsers
import watching


@pytest.fixture(scope="module")
def chromium():
    with browsers.chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def firefox():
    with browsers.firefox() as browser:
        yield browser


@pytest.fixture
def page(chromium):
    """Chromium with the usual screen size, which a test may change."""
    chromium.viewport(1280, 900)
    chromium.prefer(color_scheme="dark")
    yield chromium
    watching.leave(chromium)
    chromium.viewport(1280, 900)


@pytest.fixture
def browser(request):
    """The browser that a test is parametrised with, by name."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def demo(start_shared):
    """A server whose stream `demo` is the built-in test pattern with its beep."""
    server = start_shared("--test-pattern", "demo")
    server.wait_state("demo", "live", seconds=30)
    return server
