"""Timing rules for streams that no browser here decodes: playlists and manifest compared with the samples."""

import xml.etree.ElementTree as ElementTree
from fractions import Fraction

from harness import boxes, dash, hls, llhls
from harness.http import fetch

#: Rounding error of playlists.
ROUNDING = Fraction(2, 1000)


def problems(web: str, stream: str) -> list[str]:
    """The errors in the video playlist and in the manifest."""
    index = f"{web}/live/{stream}/index.m3u8"
    top = hls.parse_multivariant(fetch(index).good().text, index)
    url = top.absolute(top.variants[0].uri)
    return _playlist(url) + _manifest(f"{web}/live/{stream}/manifest.mpd")


def _playlist(url: str) -> list[str]:
    text = fetch(url).good().text
    low, listed = llhls.parse(text, url), hls.parse_media(text, url)
    movie = boxes.read_movie(fetch(listed.absolute(listed.segments[0].map)).good().body)
    track = next(t for t in movie.tracks.values() if t.kind == "video")
    found, spans = [], []
    for segment in listed.segments[1:]:
        read = boxes.read_segment(fetch(listed.absolute(segment.uri)).good().body, movie)
        samples = [s for f in read.fragments for run in f.runs if run.track == track.id for s in run.samples]
        spans.append((sorted(s.dts + s.cts for s in samples), samples))
    for (times, samples), (later, _), segment, following in zip(spans, spans[1:], listed.segments[1:], listed.segments[2:]):
        usual = min(s.duration for s in samples)
        length = Fraction(later[0] - times[0], track.timescale)
        if abs(Fraction(segment.duration) - length) > ROUNDING:
            found.append(f"T1 EXTINF {float(segment.duration):.3f} for {float(length):.3f} s of frames")
        apart = [b - a for a, b in zip(times, [*times[1:], later[0]])]
        if max(apart) > usual * 1.5 or min(apart) <= 0:
            found.append(f"T2 frames {min(apart)} to {max(apart)} ticks apart, a frame lasts {usual}")
        if segment.date and following.date:
            passed = Fraction((following.date - segment.date).total_seconds())
            if abs(passed - length) > ROUNDING + Fraction(1, 1000):
                found.append(f"T3 PROGRAM-DATE-TIME goes on by {float(passed):.3f} s in {float(length):.3f} s of frames")
    long = [part.duration for segment in low.segments for part in segment.parts if part.duration > low.part_target + 0.0005]
    if long:
        found.append(f"T4 {len(long)} parts longer than PART-TARGET {low.part_target}: {max(long)}")
    return found


def _manifest(url: str) -> list[str]:
    text = fetch(url).good().text
    manifest = dash.parse(text, url)
    found = dash.check(manifest)
    periods = ElementTree.fromstring(text).findall(f"{{{dash.NAMESPACE}}}Period")
    if len(periods) > 2:
        found.append(f"T5 {len(periods)} Periods in a stream without an interruption")
    for r in manifest.representations:
        for entry in r.entries[:-1]:
            if fetch(entry.url).status != 200:
                found.append(f"T6 {entry.url} is listed and cannot be had")
    return found
