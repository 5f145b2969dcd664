import FMP4
import Glibc
@testable import Local
import NIOCore
import Support
import Testing

/// A file that is there as long as this is.
final class TemporaryFile: Sendable {
  let path: String

  init(_ bytes: [UInt8]) throws {
    var template = Array("/tmp/weir-file-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    try #require(write(descriptor, bytes, bytes.count) == bytes.count)
  }

  deinit { unlink(path) }

  /// Frames of the test pattern, with audio, in fragments as weir writes them; and the samples in them.
  static func media(frames: Int64 = 30) throws -> (bytes: [UInt8], samples: [Sample], tracks: [TrackDescription]) {
    let settings = TestSourceSettings(width: 320, height: 180, keyFrameInterval: 15, videoBitRate: 300_000)
    let media = try TestMedia(settings: settings, wallStart: PatternClock.wallStart)
    var events: [MediaEvent] = []
    for frame in 0..<frames { try media.advance(to: frame) { events.append($0) } }
    try media.finish { events.append($0) }
    var segmenter = Segmenter()
    var bytes: [UInt8] = []
    var samples: [Sample] = []
    var tracks: [TrackDescription] = []
    for event in events + [.end(.finished)] {
      if case .sample(let sample) = event { samples.append(sample) }
      if case .tracks(let described) = event { tracks = described }
      for made in segmenter.receive(event) {
        switch made {
        case .initialization(let segment): bytes += Array(segment.whole.readableBytesView)
        case .fragment(let fragment):
          bytes += Array(FragmentBoxes.interleavedHead(of: fragment).readableBytesView)
          bytes += fragment.payloads.flatMap { Array($0.readableBytesView) }
        default: break
        }
      }
    }
    return (bytes, samples, tracks)
  }
}
