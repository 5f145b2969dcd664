@testable import FMP4
import NIOCore
import Support
import Testing

@Suite struct MovieOutlineTests {
  /// A finished movie of some seconds, and where its video's samples are.
  private func movie(seconds: Int = 4) throws -> [UInt8] {
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    var tables = MovieTables(tracks: tracks)
    var segmenter = Segmenter()
    var bytes: [UInt8] = []
    var events = segmenter.receive(.tracks(tracks))
    for sample in SyntheticMedia.interleaved(seconds: seconds, group: 30) {
      events += segmenter.receive(.sample(sample))
    }
    events += segmenter.receive(.discontinuity)
    for case .fragment(let fragment) in events {
      tables.append(fragment.runs, mediaOffset: UInt64(bytes.count))
      bytes += fragment.payloads.flatMap { Array($0.readableBytesView) }
    }
    let metadata = MovieMetadata(title: "cam", date: "2026", tool: "weir", creation: .zero)
    let builder = try #require(MovieBuilder(tables, metadata: metadata))
    return Array(builder.movieHeader(contentLength: UInt64(bytes.count), blockSize: 4096).readableBytesView) + bytes
  }

  private func outline(of bytes: [UInt8]) -> MovieOutline {
    var outline = MovieOutline(fileSize: UInt64(bytes.count))
    var steps = 0
    while case .read(let offset, let length) = outline.step {
      steps += 1
      guard steps <= 5000, Int(offset) + length <= bytes.count else {
        Issue.record("reads \(length) bytes at \(offset) of \(bytes.count)")
        break
      }
      outline.receive(ByteBuffer(bytes: bytes[Int(offset)..<Int(offset) + length]))
    }
    return outline
  }

  @Test func aMovieTellsItsLengthAndCodecs() throws {
    let found = outline(of: try movie())
    #expect(abs((found.duration?.seconds ?? 0) - 4) < 0.02)
    #expect(found.codecs == ["avc1.64000D", "mp4a.40.2"])
  }

  @Test func whatIsCutShortTellsNoMoreThanItHas() throws {
    let bytes = try movie(seconds: 1)
    for length in 0..<2000 { _ = outline(of: Array(bytes[..<length])) }
    #expect(outline(of: Array(bytes[..<40])).duration == nil)
    #expect(outline(of: []).codecs == [])
  }

  @Test func sizesThatLieEndTheReading() throws {
    var bytes = try movie(seconds: 1)
    for position in stride(from: 0, to: 1200, by: 3) {
      let before = bytes[position]
      for value: UInt8 in [0, 1, 0x7F, 0xFF] {
        bytes[position] = value
        _ = outline(of: bytes)
      }
      bytes[position] = before
    }
  }

  // MARK: Key frames

  private func moov(_ bytes: [UInt8]) throws -> BoxView {
    try #require(BoxReader(ByteBuffer(bytes: bytes)).first { $0.type == "moov" })
  }

  private func keyFrame(_ payload: [UInt8], near fraction: Double) throws(BoxError) -> MovieKeyFrame {
    let range = 0..<UInt64(payload.count + 16)
    let header = try BoxHeader(ByteBuffer(bytes: [0, 0, 0, 0] + Array("moov".utf8)), in: range)
    return try MovieKeyFrame(in: BoxView(header, ByteBuffer(bytes: payload)), near: fraction)
  }

  @Test(arguments: [(0.0, 0.0), (0.1, 0.0), (0.3, 1.0), (0.5, 2.0), (0.74, 2.0), (0.76, 3.0), (1.0, 3.0), (7.0, 3.0)])
  func theKeyFrameBeforeAPlaceIsFound(_ fraction: Double, _ seconds: Double) throws {
    let bytes = try movie()
    let frame = try MovieKeyFrame(in: try moov(bytes), near: fraction)
    #expect(abs(frame.seconds - seconds) < 0.001)
    #expect(frame.track.kind == .video)
    // The bytes at that place are the sample's own.
    let wanted = SyntheticMedia.interleaved(seconds: 4, group: 30).filter { $0.track == .video && $0.isSync }[
      Int(seconds)]
    let place = Int(frame.offset)..<Int(frame.offset) + frame.length
    #expect(Array(bytes[place]) == Array(wanted.payload.readableBytesView))
  }

  @Test func tablesThatDoNotFitGiveNoKeyFrame() throws {
    var bytes = Array(try moov(try movie(seconds: 1)).payload.readableBytesView)
    for position in bytes.indices {
      let before = bytes[position]
      bytes[position] = 0xFF
      _ = try? keyFrame(bytes, near: 0.5)
      bytes[position] = before
    }
    for length in stride(from: 0, to: bytes.count, by: 7) {
      _ = try? keyFrame(Array(bytes[..<length]), near: 0.5)
    }
    #expect(throws: BoxError(.missing("trak"), ["moov"], at: 0)) { try keyFrame([], near: 0.1) }
  }
}
