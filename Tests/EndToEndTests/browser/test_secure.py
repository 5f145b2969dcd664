"""The page over HTTPS: Chromium uses HTTP/2 and plays."""

import browsers
import pytest
import watching

from harness import tools


@pytest.fixture(scope="module")
def trusting():
    """A Chromium that accepts a self-signed certificate."""
    with browsers.chromium("--ignore-certificate-errors") as browser:
        yield browser


def test_chromium_plays_over_http2(trusting, start_shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    done = tools.run(tools.OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                     "-nodes", "-keyout", key, "-out", cert, "-days", "30", "-subj", "/CN=localhost")
    assert done.returncode == 0, done.stderr
    weir = start_shared("--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--test-pattern", "demo",
                        "--no-record", listeners=("http", "https", "rtmp"))
    weir.wait_state("demo", "live", seconds=30)
    trusting.open(f"{weir.addresses['https']}/watch/demo?player=mse")
    playing = watching.wait_phase(trusting, "playing")
    assert (playing["width"], playing["height"]) == (1280, 720)
    protocols = trusting.evaluate(
        "[...new Set(performance.getEntriesByType('resource').map((entry) => entry.nextHopProtocol))]")
    assert protocols == ["h2"]
    watching.leave(trusting)
