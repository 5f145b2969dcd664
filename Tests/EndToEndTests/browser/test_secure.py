"""The page over HTTPS: Chromium uses HTTP/2 and plays."""

import pytest
import watching

from harness import sources, tools


@pytest.fixture
def trusting(chromium):
    """Chromium, which accepts a self-signed certificate meanwhile."""
    chromium.call("Security.setIgnoreCertificateErrors", ignore=True)
    yield chromium
    watching.leave(chromium)
    chromium.call("Security.setIgnoreCertificateErrors", ignore=False)


def test_chromium_plays_over_http2(trusting, start, tmp_path):
    cert, key = tools.make_certificate(tmp_path / "tls")
    weir = start("--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--source", f"demo=file:{sources.source('loop')}",
                 "--no-record", listeners=("http", "https", "rtmp"))
    weir.wait_state("demo", "live", seconds=30)
    trusting.open(f"{weir.addresses['https']}/watch/demo?player=mse")
    playing = watching.wait_phase(trusting, "playing")
    assert (playing["width"], playing["height"]) == (320, 180)
    protocols = trusting.evaluate(
        "[...new Set(performance.getEntriesByType('resource').map((entry) => entry.nextHopProtocol))]")
    assert protocols == ["h2"]
