@testable import FMP4
import Glibc
import NIOCore
@testable import Publishing
@testable import Recording
@testable import RecordingFiles
@testable import RecordingFormat
@testable import Storage
@testable import Streams

/// A file in the folder of recordings, from any origin: opened, listed, played, sought, clipped and looked at.
extension FuzzTarget {
  static func open(_ bytes: [UInt8]) {
    let bytes = withTrueChecksum(bytes)
    let descriptor = memfd_create("fuzz", UInt32(MFD_CLOEXEC))
    guard descriptor >= 0, write(descriptor, bytes, bytes.count) == bytes.count else { return }
    let size = UInt64(bytes.count)
    let file = SharedFile(taking: descriptor, kind: .disk)
    _ = RecordingMetadata.read(descriptor, size: size)
    outline(bytes)
    guard let stream = StreamName("cam"),
      let source = try? RecordingArchive.load(file, size: size, stream: stream, name: "20261121T072410Z")
    else { return }
    for rendition in [Rendition.interleaved, .video, .audio] {
      _ = source.document(.media(rendition), target: nil)
      for index in 0..<min(4, source.withIndex { $0.segments.count }) {
        _ = try? source.playablePieces(ofSegment: index, rendition)
      }
      for version in source.withIndex({ $0.versions.prefix(4).map(\.number) }) {
        _ = source.initSegment(version, rendition)
      }
    }
    let documents: [ReplayDocument] = [
      .multivariant(.interleaved, video: nil), .multivariant(.separate, video: nil), .multivariant(.separate, video: 2),
      .keyFrames, .manifest,
    ]
    for document in documents {
      _ = source.document(document, target: 2)
    }
    let metadata = MovieMetadata(title: "x", date: "", tool: "", creation: .zero)
    let moments: [ReplaySource.Moment?] = [
      nil, .media(MediaTime(milliseconds: 0)), .media(MediaTime(milliseconds: 700)),
      .media(MediaTime(milliseconds: -1)),
      .media(MediaTime(ticks: .max, timescale: 1)), .wall(WallTime(nanoseconds: 1_795_245_850_000_000_000)),
      .wall(WallTime(nanoseconds: .min)), .wall(WallTime(nanoseconds: .max)),
    ]
    for from in moments {
      for to in moments {
        _ = source.length(from: from, to: to)
        _ = try? source.clip(from: from, to: to, metadata: metadata)
      }
    }
  }

  /// Whatever the pieces in which it comes, the samples are the same, and so is what is wrong with it.
  static func demux(_ bytes: [UInt8]) {
    let whole = demuxed(bytes, pieces: .max)
    for pieces in [1, 13, 4096] { precondition(demuxed(bytes, pieces: pieces) == whole) }
  }

  private static func demuxed(_ bytes: [UInt8], pieces: Int) -> [String] {
    var demuxer = FragmentDemuxer()
    var found: [String] = []
    var rest = bytes[...]
    do {
      while !rest.isEmpty {
        demuxer.receive(ByteBuffer(bytes: rest.prefix(pieces)))
        rest = rest.dropFirst(pieces)
        while let event = try demuxer.next() {
          switch event {
          case .sample(let sample):
            found.append(
              "\(sample.track) \(sample.decodeTime) \(sample.compositionOffset) \(sample.payload.readableBytes)")
          case .tracks(let tracks):
            precondition((1...FragmentDemuxer.maximumTracks).contains(tracks.count))
            found.append("\(tracks.map(\.id))")
          default: preconditionFailure("neither tracks nor samples")
          }
        }
      }
      try demuxer.end()
    } catch {
      found.append("\(error)")
    }
    return found
  }

  private static func outline(_ bytes: [UInt8]) {
    var outline = MovieOutline(fileSize: UInt64(bytes.count))
    while case .read(let offset, let length) = outline.step {
      precondition(length > 0 && offset + UInt64(length) <= UInt64(bytes.count))
      outline.receive(ByteBuffer(bytes: bytes[Int(offset)..<Int(offset) + length]))
    }
  }

  /// A stored index is believed by its checksum, which no fuzzer guesses: it gets the true one.
  private static func withTrueChecksum(_ bytes: [UInt8]) -> [UInt8] {
    let magic = Array("weir-ix2".utf8)
    let last = bytes.count - RecordingIndex.storedHeadSize
    guard last >= 0,
      let start = (0...last).first(where: { bytes[$0] == magic[0] && bytes[$0..<$0 + magic.count].elementsEqual(magic) }
      ),
      let size = RecordingIndex.size(ofStored: ByteBuffer(bytes: bytes[start...])), start + size <= bytes.count
    else { return bytes }
    var result = bytes
    let sum = bytes[start + 16..<start + size].reduce(0xcbf2_9ce4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01b3
    }
    for index in 0..<8 { result[start + 8 + index] = UInt8(truncatingIfNeeded: sum >> (56 - 8 * UInt64(index))) }
    return result
  }

  /// The recording as it is when it is finished: with its head, and its index before the media.
  static func finished(_ recording: [UInt8]) -> [UInt8]? {
    var scanner = RecordingScanner(fileSize: UInt64(recording.count))
    while case .read(let offset, let length) = scanner.step {
      scanner.receive(ByteBuffer(bytes: recording[Int(offset)..<Int(offset) + length]))
    }
    guard case .fragmented(let tables, let length) = scanner.content else { return nil }
    var indexer = RecordingIndexer()
    for found in scanner.takeFound() { indexer.add(found) }
    let metadata = MovieMetadata(title: "x", date: "", tool: "", creation: .zero)
    guard var builder = MovieBuilder(tables, metadata: metadata) else { return nil }
    builder.annex = indexer.finished.stored
    return Array(builder.movieHeader(contentLength: length, blockSize: 1).readableBytesView) + recording
  }
}
