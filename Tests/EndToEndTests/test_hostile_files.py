"""Foreign files in the folder of recordings, and viewers who request them."""

import pytest

from harness import tools


@pytest.fixture(scope="module")
def scene(start_shared):
    weir = start_shared()
    folder = weir.recordings / "cam"
    folder.mkdir(parents=True, exist_ok=True)
    return weir, folder


@pytest.mark.parametrize("kind", [b"free", b"mdat", b"moov", b"skip"])
@pytest.mark.parametrize("size", [0, 8, 15])
def test_a_file_whose_boxes_lie_ends_nobody(scene, kind, size):
    """ISO/IEC 14496-12 §4.2.2: a 64-bit size includes its own sixteen bytes. Recordings can be requested without a token."""
    weir, folder = scene
    name = f"20261121T0724{size:02}Z"
    beginning = b"\0\0\0\x10ftypisom\0\0\0\0" + (b"\0\0\0\x08moov" if kind == b"mdat" else b"")
    (folder / f"{name}.mp4").write_bytes(beginning + b"\0\0\0\1" + kind + size.to_bytes(8, "big") + bytes(4096))
    for path in ("index.m3u8", "manifest.mpd", "clip.mp4?from=0&to=1"):
        assert weir.get(f"/recordings/cam/{name}/{path}").status in (400, 404, 422), path
    # A movie without samples does not count as damaged.
    assert tools.run(tools.weir_binary(), "record", "verify", folder / f"{name}.mp4").returncode == (0 if kind == b"mdat" else 1)
    assert weir.get("/healthz").status == 200
