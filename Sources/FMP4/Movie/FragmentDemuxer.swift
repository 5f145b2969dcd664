public import NIOCore

/// Reads fragmented MP4 that arrives in pieces of any size. Returns its tracks and samples as media events, with the
/// times of the fragments (ISO/IEC 14496-12 §8.8). Each sample is returned as soon as its last byte is there. A value
/// type without connection or clock. The sender may be hostile: the memory kept is bounded.
public struct FragmentDemuxer: Sendable {
  /// Most bytes of a `moov` or `moof`, and of a sample.
  package static let largestHead: UInt64 = 4 << 20
  package static let largestSample = 16 << 20
  /// Most tracks that are read.
  package static let maximumTracks = 32
  /// Most samples of a `moof`: minutes of video and audio.
  package static let maximumSamples = 16_384

  /// Tracks of the newest `moov`.
  public private(set) var tracks: [TrackDescription] = []
  /// Why tracks of that `moov` were left out, mostly because their codec is not supported.
  public private(set) var leftOut: [BoxError] = []

  private var buffer = ByteBuffer()
  /// Stream offset of the buffer's first byte.
  private var position: UInt64 = 0
  private var place = Place.betweenBoxes
  private var timescales: [TrackID: UInt32] = [:]
  private var defaults: [TrackID: FragmentReader.Defaults] = [:]
  /// Samples of the newest `moof` whose media has not come yet, in order of their offset.
  private var expected: ArraySlice<ExpectedSample> = []

  private enum Place: Sendable {
    case betweenBoxes
    /// Reading failed; nothing after that can be read.
    case failed(BoxError)
    /// Skipping bytes up to this offset.
    case passing(until: UInt64)
    /// Inside an `mdat` that ends at this offset.
    case media(until: UInt64)
  }

  private struct ExpectedSample: Sendable {
    var offset: UInt64
    var size: Int
    /// The sample without its payload.
    var sample: Sample
  }

  /// A demuxer that has received nothing.
  public init() {}

  /// Takes received bytes. Then call `next` until it returns nil.
  public mutating func receive(_ bytes: ByteBuffer) {
    if case .failed = place { return }
    if buffer.readableBytes == 0 {
      buffer = bytes
    } else {
      buffer.discardReadBytes()
      buffer.writeImmutableBuffer(bytes)
    }
  }

  /// The next event. Nil if more bytes are needed. After an error nothing more can be read.
  public mutating func next() throws(BoxError) -> MediaEvent? {
    do throws(BoxError) {
      return try read()
    } catch {
      (place, buffer, expected) = (.failed(error), ByteBuffer(), [])
      throw error
    }
  }

  private mutating func read() throws(BoxError) -> MediaEvent? {
    while true {
      switch place {
      case .failed(let error): throw error
      case .betweenBoxes:
        guard let header = try header() else { return nil }
        // Only `mdat` may extend to the end of the stream.
        guard header.extent == .stated || header.type == "mdat", position > 0 || FourCC.outermost.contains(header.type)
        else { throw BoxError(.invalid, [header.type], at: position) }
        switch header.type {
        case "moov", "moof":
          guard let box = try head(header) else { return nil }
          if header.type == "moof" { try fragment(box) } else if let event = try movie(box) { return event }
        case "mdat":
          consume(header.length)
          place = .media(until: header.range.upperBound)
        default: place = .passing(until: header.range.upperBound)
        }
      case .passing(let end):
        guard pass(to: end) else { return nil }
        place = .betweenBoxes
      case .media(let end):
        guard let first = expected.first, first.offset < end else {
          place = .passing(until: end)
          continue
        }
        guard let sample = try sample(first, before: end) else { return nil }
        return .sample(sample)
      }
    }
  }

  /// Call it when no more bytes will arrive.
  public func end() throws(BoxError) {
    switch place {
    case .failed(let error): throw error
    case .betweenBoxes, .passing(until: .max), .media(until: .max):
      guard buffer.readableBytes == 0, expected.isEmpty else { break }
      return
    case .passing, .media: break
    }
    throw BoxError(.truncated, [], at: position + UInt64(buffer.readableBytes))
  }

  // MARK: Boxes

  private mutating func header() throws(BoxError) -> BoxHeader? {
    guard buffer.readableBytes >= BoxHeader.shortest else { return nil }
    // A header has 8 or 16 bytes; its first 8 bytes show which.
    let isLong = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self) == 1
    guard !isLong || buffer.readableBytes >= BoxHeader.longest else { return nil }
    return try BoxHeader(buffer, in: position..<UInt64.max)
  }

  /// Reads a whole box. Nil if it has not completely arrived.
  private mutating func head(_ header: BoxHeader) throws(BoxError) -> BoxView? {
    guard header.size <= Self.largestHead else {
      throw BoxError(.large(size: header.size), [header.type], at: position)
    }
    guard var whole = buffer.readSlice(length: Int(header.size)) else { return nil }
    position += header.size
    whole.moveReaderIndex(forwardBy: Int(header.length))
    return BoxView(header, whole)
  }

  private mutating func consume(_ count: UInt64) {
    buffer.moveReaderIndex(forwardBy: Int(count))
    position += count
  }

  /// Skips bytes up to `end`. False if some of them have not arrived.
  private mutating func pass(to end: UInt64) -> Bool {
    guard end > position else { return true }
    consume(min(end - position, UInt64(buffer.readableBytes)))
    return position == end
  }

  // MARK: Tracks

  /// Reads a `moov`. Nil if the tracks have not changed.
  private mutating func movie(_ box: BoxView) throws(BoxError) -> MediaEvent? {
    try expectsNothing(before: box)
    var found: [TrackDescription] = []
    leftOut = []
    for child in box.boxes() where child.type == "trak" {
      guard found.count + leftOut.count < Self.maximumTracks else { throw child.error(.large(size: child.header.size)) }
      do throws(BoxError) {
        let track = try MovieReader.track(child)
        guard !found.contains(where: { $0.id == track.id }) else { throw child.error(.invalid) }
        found.append(track)
      } catch {
        leftOut.append(error)
      }
    }
    guard !found.isEmpty else { throw leftOut.first ?? box.error(.missing("trak")) }
    guard box.first("mvex") != nil else { throw box.error(.missing("mvex")) }
    timescales = Dictionary(found.map { ($0.id, $0.timescale) }) { first, _ in first }
    defaults = MovieReader.fragmentDefaults(box, tracks: found)
    guard found != tracks else { return nil }
    tracks = found
    return .tracks(found)
  }

  // MARK: Fragments

  /// Reads a `moof`. Its media comes after it.
  private mutating func fragment(_ box: BoxView) throws(BoxError) {
    try expectsNothing(before: box)
    guard !tracks.isEmpty else { throw box.error(.unfinished) }
    let start = box.header.range.lowerBound
    var samples: [ExpectedSample] = []
    for located in try FragmentReader.read(
      box, timescales: timescales, defaults: defaults, passesOthers: true, most: Self.maximumSamples)
    {
      var offset = start + UInt64(located.offset)
      var time = located.run.baseDecodeTime
      for sample in located.run.samples {
        guard sample.size <= Self.largestSample else { throw box.error(.large(size: UInt64(sample.size))) }
        if sample.size > 0 {
          samples.append(
            ExpectedSample(
              offset: offset, size: Int(sample.size),
              sample: Sample(
                track: located.run.track, decodeTime: time, compositionOffset: sample.compositionOffset,
                duration: sample.duration > 0 ? sample.duration : nil, isSync: sample.isSync,
                isDisposable: sample.isDisposable, payload: ByteBuffer())))
        }
        offset += UInt64(sample.size)
        time &+= Int64(sample.duration)
      }
    }
    // A stable sort: runs may be in any order.
    expected =
      samples.enumerated().sorted { ($0.element.offset, $0.offset) < ($1.element.offset, $1.offset) }
      .map(\.element)[...]
    if let first = expected.first, first.offset < position { throw box.error(.invalid) }
  }

  /// Throws if media of the fragment before is missing.
  private func expectsNothing(before box: BoxView) throws(BoxError) {
    if let first = expected.first {
      throw box.error(.cut(size: UInt64(first.size), room: 0))
    }
  }

  /// The next sample. Nil if it has not completely arrived.
  private mutating func sample(_ next: ExpectedSample, before end: UInt64) throws(BoxError) -> Sample? {
    // The sample must be inside the `mdat` and after the sample before.
    guard next.offset >= position, UInt64(next.size) <= end - next.offset else {
      throw BoxError(.invalid, ["mdat"], at: next.offset)
    }
    guard pass(to: next.offset), let bytes = buffer.readSlice(length: next.size) else { return nil }
    position += UInt64(next.size)
    expected.removeFirst()
    var sample = next.sample
    sample.payload = ByteBufferAllocator().buffer(capacity: next.size)
    sample.payload.writeImmutableBuffer(bytes)
    return sample
  }
}
