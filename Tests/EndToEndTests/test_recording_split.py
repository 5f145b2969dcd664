"""A recording in several files: together they have every sample once. In each, video and audio begin together."""

import pytest

from harness import nothing_wrong, packets, publishers, recordings, sources

#: One frame of AAC at 48 kHz, in seconds.
FRAME = 1024 / 48000


@pytest.fixture(scope="module")
def files(start_shared, tmp_path_factory):
    weir = start_shared("--record-split", "each:10s")
    publishers.ffmpeg("steady", f"{weir.rtmp}/live/cam", rate=12).wait(60)
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("cam")].count("completed") >= 7, 20, "all files")
    folder = tmp_path_factory.mktemp("files")
    paths = []
    for entry in weir.recordings_of("cam"):
        paths.append(folder / entry["file"])
        paths[-1].write_bytes(weir.get(entry["url"]).good().body)
    # Times of day are corrected while media comes faster than it plays: the film says what follows what.
    places = {packet.digest: place for place, packet in enumerate(packets.probe(sources.source("steady"))["video"])}
    return sorted(paths, key=lambda path: places[packets.probe(path)["video"][0].digest])


def test_every_sample_is_in_one_of_them(files):
    film, found = packets.probe(sources.source("steady")), [packets.probe(path) for path in files]
    for kind in ("video", "audio"):
        assert [p.digest for file in found for p in file[kind]] == [p.digest for p in film[kind]], kind


def test_each_is_a_movie_that_begins_with_video_and_audio(files):
    assert len(files) == 7
    for path in files:
        nothing_wrong(recordings.check_recording(path))
        found = packets.probe(path)
        first, last = (
            [float(edge(p.pts for p in found[kind])) for kind in ("audio", "video")] for edge in (min, max))
        assert found["video"][0].is_key
        # The first file has the film's own beginning.
        if path != files[0]:
            assert abs(first[0] - first[1]) <= FRAME + 0.001, f"{path.name}: audio from {first[0]}, video from {first[1]}"
        if path != files[-1]:
            assert abs(last[0] + FRAME - last[1] - 1 / 30) <= FRAME + 0.001, f"{path.name}: ends {last}"
