internal import FMP4
internal import Logging
internal import Publishing
package import Streams
package import Support
internal import Synchronization
internal import Testing

/// A live stream whose publisher sends a frame a second, in segments of two.
package struct SteadyStream: Sendable {
  package let registry: StreamRegistry
  package let stream: LiveStream
  /// Sends the next frame: one that begins a segment, or the other half of one.
  package let send: @Sendable () -> Void

  /// With a window of so many segments, which is full. A segment is complete: its second frame has come.
  package init(segments: Int, clock: ManualClock) async throws {
    let registry = StreamRegistry(
      settings: { _ in
        var settings = StreamSettings()
        settings.window = MediaTime(milliseconds: Int64(segments) * 2000)
        return settings
      }, clock: clock.clock, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
    let name = try #require(StreamName("cam"))
    let sink = try await registry.admit(
      PublishRequest(
        stream: name, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5", host: "10.0.0.1", origin: .peer
      ) { _ in })
    _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    _ = sink.receive(.tracks([try SyntheticMedia.video(frameDuration: 30_000)]))
    let frames = Frames()
    let send: @Sendable () -> Void = {
      let frame = SyntheticMedia.frame(frames.next(), group: 2, duration: 30_000, size: 10, isSteady: true)
      _ = sink.receive(.sample(frame))
    }
    for _ in 0..<2 * segments + 20 { send() }
    let stream = try #require(registry.stream(name))
    #expect(stream.epoch.window.segments.count >= segments - 1)
    (self.registry, self.stream, self.send) = (registry, stream, send)
  }

  private final class Frames: Sendable {
    private let count = Atomic(0)
    func next() -> Int { count.add(1, ordering: .relaxed).oldValue }
  }
}
