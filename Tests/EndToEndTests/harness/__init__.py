"""Publishers, viewers and judges for weir's end-to-end tests. Nothing here uses weir's sources. It connects to the running
program by RTMP and HTTP, and reads the responses with its own parsers or with ffmpeg."""


def nothing_wrong(problems: list[str]) -> None:
    """Fails with all problems that a judge found, one per line."""
    assert not problems, "\n" + "\n".join(problems[:25]) + (f"\n… {len(problems)} in all" if len(problems) > 25 else "")
