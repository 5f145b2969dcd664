"""Offers of WebRTC peers that exist on paper alone."""

SECTION = """m={kind} 9 UDP/TLS/RTP/SAVPF {payload}
c=IN IP4 0.0.0.0
a=ice-ufrag:abcd
a=ice-pwd:0123456789abcdefghijklmn
a=fingerprint:sha-256 {fingerprint}
a=setup:actpass
a=mid:{mid}
a={direction}
a=rtcp-mux
a=rtpmap:{payload} {codec}
"""


#: That of no certificate.
NOBODY = ":".join(["AB"] * 32)


def offer(direction: str, video: str = "H264", fingerprint: str = NOBODY) -> str:
    """Opus and video in one bundle, to be sent or received."""
    common = {"fingerprint": fingerprint, "direction": direction}
    text = "v=0\no=- 1 2 IN IP4 127.0.0.1\ns=-\nt=0 0\na=group:BUNDLE 0 1\n"
    text += SECTION.format(kind="audio", mid=0, payload=111, codec="opus/48000/2", **common)
    text += SECTION.format(kind="video", mid=1, payload=96, codec=f"{video}/90000", **common)
    text += "a=fmtp:96 packetization-mode=1;profile-level-id=42e01f\n"
    return text.replace("\n", "\r\n")
