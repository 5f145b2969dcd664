import Base
import FMP4
import Glibc
import NIOCore
import NIOPosix
import Publishing
import RTMP
import Support
import Testing

/// For looking by hand: `RTMP_HARNESS=seconds swift test --filter rtmpHarness` listens on RTMP_PORT and prints what
/// comes. Does nothing otherwise.
@Test(.enabled(if: getenv("RTMP_HARNESS") != nil))
func rtmpHarness() async throws {
  let seconds = getenv("RTMP_HARNESS").flatMap { Int(String(cString: $0)) } ?? 20
  let port = getenv("RTMP_PORT").flatMap { Int(String(cString: $0)) } ?? 19350
  let gate = RecordingGate()
  let log = LogCollector()
  let listener = RTMPListener(
    gate: gate, clock: .system(), logger: log.logger, group: MultiThreadedEventLoopGroup.singleton)
  let address = try await listener.start(.address(try SocketAddress(ipAddress: "127.0.0.1", port: port)))
  print("listening on \(address)")
  var printed = 0
  for _ in 0..<seconds * 2 {
    try await Task.sleep(for: .milliseconds(500))
    let lines = log.lines
    for line in lines[printed...] { print(line) }
    printed = lines.count
  }
  await listener.stop()
  for line in log.lines[printed...] { print(line) }
  for sink in gate.sinks {
    print("stream \(sink.request.stream) software \(sink.request.software) end \(String(describing: sink.ending))")
    for event in sink.recorded {
      switch event {
      case .sample(let s):
        print(
          "S \(s.track.rawValue) \(s.decodeTime) \(s.decodeTime + Int64(s.compositionOffset)) \(s.duration.map(String.init) ?? "-") \(s.isSync ? "K" : "-") \(s.payload.readableBytes)"
        )
      case .tracks(let tracks):
        for t in tracks {
          print("T \(t.id.rawValue) \(t.timescale) \(String(describing: t.frameDuration)) \(t.summary)")
        }
      case .clock(let anchor): print("C \(anchor.mediaTime) \(anchor.wallTime)")
      case .discontinuity: print("D")
      case .end(let reason): print("E \(reason)")
      case .progress(let time): print("P \(time)")
      }
    }
  }
}
