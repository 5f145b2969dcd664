"""Publishers, viewers and judges for weir's end-to-end tests. Nothing here knows weir's sources: it speaks RTMP and
HTTP to the running program and reads what comes back by its own means (or by ffmpeg's)."""


def nothing_wrong(problems: list[str]) -> None:
    """Fails with every problem that a judge found, a line each."""
    assert not problems, "\n" + "\n".join(problems[:25]) + (f"\n… {len(problems)} in all" if len(problems) > 25 else "")
