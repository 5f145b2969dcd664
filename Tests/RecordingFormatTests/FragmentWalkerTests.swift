import FMP4
import NIOCore
import RecordingFormat
import Support
import Testing

@Suite("A walk over the fragments of a file")
struct FragmentWalkerTests {
  private enum Told {
    case tracks([TrackDescription], offset: UInt64)
    case fragment(WalkedFragment)
  }

  private func recording(_ seconds: Int = 3) throws -> SyntheticRecording {
    SyntheticRecording([try SyntheticMedia.video(), try SyntheticMedia.audio()], seconds: seconds)
  }

  /// All that a walk tells, and how many bytes it read. No read leaves the stretch.
  private func walk(
    _ bytes: [UInt8], in stretch: Range<UInt64>? = nil, tracks: [TrackDescription] = []
  ) -> (told: [Told], read: Int) {
    let stretch = stretch ?? 0..<UInt64(bytes.count)
    var walker = FragmentWalker(stretch, tracks: tracks)
    var told: [Told] = []
    var read = 0
    for _ in 0..<10 * (bytes.count + 1) {
      switch walker.next() {
      case .read(let offset, let length):
        guard length > 0, offset >= stretch.lowerBound, offset + UInt64(length) <= stretch.upperBound else {
          Issue.record("it reads \(length) bytes at \(offset)")
          return (told, read)
        }
        read += length
        walker.receive(ByteBuffer(bytes: bytes.dropFirst(Int(offset)).prefix(length)))
      case .tracks(let tracks, let offset): told.append(.tracks(tracks, offset: offset))
      case .fragment(let fragment): told.append(.fragment(fragment))
      case .finished: return (told, read)
      }
    }
    Issue.record("it does not come to an end")
    return (told, read)
  }

  private func fragments(_ told: [Told]) -> [WalkedFragment] {
    told.compactMap { if case .fragment(let fragment) = $0 { fragment } else { nil } }
  }

  private func places(_ told: [Told]) -> [Range<Int>] { fragments(told).map { Int($0.offset)..<Int($0.end) } }

  @Test func `A recording tells its tracks and then every fragment with its place`() throws {
    let recording = try recording()
    let (told, _) = walk(recording.bytes)
    guard case .tracks(let tracks, let offset)? = told.first else {
      Issue.record("the tracks come first")
      return
    }
    let movie = try #require(Box.parse(recording.bytes)?.first { $0.type == "moov" })
    #expect(tracks.map(\.codec) == recording.tracks.map(\.codec) && offset == UInt64(movie.offset))
    #expect(places(told) == recording.places)
    for (walked, written) in zip(fragments(told), recording.fragments) {
      #expect(walked.fragment.runs.map(\.samples) == written.runs.map(\.samples))
    }
  }

  @Test func `Only heads are read`() throws {
    var recording = try recording(1)
    // A fragment's media becomes a mebibyte longer than its runs say.
    let last = try #require(Box.parse(recording.bytes)?.last { $0.type == "mdat" })
    let more = 1 << 20
    recording.bytes.replaceSubrange(
      last.offset..<last.offset + 4, with: BoxBytes.u32(UInt32(last.payload.count + 8 + more)))
    recording.bytes += [UInt8](repeating: 0, count: more)
    let (told, read) = walk(recording.bytes)
    #expect(fragments(told).count == recording.fragments.count && read < 65_536)
  }

  @Test func `A stretch is walked with the tracks that are known`() throws {
    let recording = try recording()
    let stretch = UInt64(recording.places[2].lowerBound)..<UInt64(recording.places[4].upperBound)
    #expect(places(walk(recording.bytes, in: stretch, tracks: recording.tracks).told) == Array(recording.places[2...4]))
    #expect(walk(recording.bytes, in: stretch).told.isEmpty, "without tracks nothing can be read")
  }

  @Test func `A file that ends anywhere tells its whole fragments`() throws {
    let recording = try recording(1)
    for length in stride(from: 0, to: recording.bytes.count, by: 7) {
      let told = walk(Array(recording.bytes.prefix(length))).told
      #expect(places(told) == recording.places.filter { $0.upperBound <= length }, "\(length)")
    }
  }

  @Test func `Fewer bytes than were wanted end the walk`() throws {
    let recording = try recording(1)
    for most in [0, 1, 7, 100] {
      var walker = FragmentWalker(0..<UInt64(recording.bytes.count))
      guard case .read(let offset, let length) = walker.next() else {
        Issue.record("nothing is read")
        return
      }
      walker.receive(ByteBuffer(bytes: recording.bytes.dropFirst(Int(offset)).prefix(min(most, length - 1))))
      guard case .finished = walker.next(), case .finished = walker.next() else {
        Issue.record("it goes on")
        return
      }
    }
  }

  @Test func `A walk can be continued further on`() throws {
    let recording = try recording()
    var walker = FragmentWalker(0..<UInt64(recording.bytes.count), tracks: recording.tracks)
    walker.skip(to: UInt64(recording.places[3].lowerBound))
    var found: [Range<Int>] = []
    loop: while true {
      switch walker.next() {
      case .read(let offset, let length):
        walker.receive(ByteBuffer(bytes: recording.bytes.dropFirst(Int(offset)).prefix(length)))
      case .fragment(let fragment): found.append(Int(fragment.offset)..<Int(fragment.end))
      case .tracks: Issue.record("the movie lies before")
      case .finished: break loop
      }
    }
    #expect(found == Array(recording.places[3...]))
  }

  @Test func `A changed movie in a free box changes the tracks, another free box nothing`() throws {
    let recording = try recording(1)
    var other = try SyntheticMedia.video()
    other.codec = Codec(try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High)))
    let change = ParameterChange.box(InitSegment(version: 2, tracks: [other, try SyntheticMedia.audio()]))
    let plain = BoxBytes.box("free", [UInt8](repeating: 7, count: 100)) + BoxBytes.box("free")
    let bytes = recording.bytes + plain + Array(change.readableBytesView)
    let told = walk(bytes).told
    guard case .tracks(let tracks, let offset)? = told.last else {
      Issue.record("the change is not told")
      return
    }
    #expect(tracks.first?.codec == other.codec && Int(offset) == recording.bytes.count + plain.count)
    #expect(told.count == recording.places.count + 2)
  }

  @Test func `A finished movie has no fragments`() throws {
    let recording = try recording(1)
    var tables = MovieTables(tracks: recording.tracks)
    for fragment in recording.fragments { tables.append(fragment.runs, mediaOffset: 0) }
    let metadata = MovieMetadata(title: "", date: "", tool: "", creation: .zero)
    let head = try #require(MovieBuilder(tables, metadata: metadata)).movieHeader(contentLength: 100, blockSize: 1)
    #expect(walk(Array(head.readableBytesView) + [UInt8](repeating: 0, count: 100)).told.isEmpty)
  }

  @Test func `A head of more than 16 MiB is not read`() {
    for type in ["moov", "moof", "prft"] {
      let size: UInt64 = 17 << 20
      var walker = FragmentWalker(0..<size)
      guard case .read = walker.next() else {
        Issue.record("nothing is read")
        return
      }
      let head = BoxBytes.u32(UInt32(size)) + Array(type.utf8)
      walker.receive(ByteBuffer(bytes: head + [UInt8](repeating: 0, count: 4096 - 8)))
      guard case .finished = walker.next() else {
        Issue.record("\(type) is read")
        return
      }
    }
  }

  @Test func `Changed bytes of the heads never trap and never make a fragment that leaves the file`() throws {
    let recording = try recording(1)
    let end = recording.places[0].lowerBound + 300
    for place in 0..<end {
      for value: UInt8 in [0, 1, 0x7F, 0xFF] {
        var bytes = recording.bytes
        bytes[place] = value
        for fragment in fragments(walk(bytes).told) {
          #expect(fragment.end <= UInt64(bytes.count) && fragment.offset < fragment.end)
          for (run, offset) in zip(fragment.fragment.runs, fragment.mediaOffsets) {
            #expect(offset + UInt64(run.byteCount) <= fragment.end)
          }
        }
      }
    }
  }
}
