internal import NIOCore
internal import NIOHTTP2

/// Reports each frame that NIO writes.
final class HTTP2FrameObserver: NIOHTTP2FrameDelegate {
  weak var connection: HTTP2Connection?

  func wroteFrame(_ frame: HTTP2Frame) {
    switch frame.payload {
    case .data(let data): connection?.didWrite(data.data.readableBytes, on: frame.streamID)
    case .goAway(_, let code, _): connection?.didWriteGoAway(code)
    default: break
    }
  }
}
