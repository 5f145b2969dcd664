public import NIOCore

/// The bytes of one frame as stored in a sample, and facts found in them.
public struct AccessUnit: Sendable {
  /// NAL units with four-byte lengths, without delimiters, parameter sets and filler. For AV1: a temporal unit without
  /// its delimiter. For VP9: a frame or superframe. Empty if the access unit had nothing else. If nothing had to
  /// change, it is the incoming buffer.
  public var payload: ByteBuffer
  /// Decoding can start here.
  public var isSync: Bool
  /// No other frame refers to this one. False for AV1 and VP9, where the frame's first header bits do not state it.
  public var isDisposable = false
  /// Its picture becomes whole from here on, over some frames (intra refresh). Decoding cannot start here.
  package var isGradualRefresh = false
  /// Parameter sets found in the access unit, without start code or length (AV1: sequence headers as OBUs with a size
  /// field; VP9: the beginning of a key frame). Input for `Codec.updated(withParameterSets:)`.
  public var parameterSets: [[UInt8]]
  /// High dynamic range values from its messages.
  package var masteringDisplay: MasteringDisplay?
  package var lightLevel: ContentLightLevel?
  /// Closed captions in its messages.
  package var captions = CaptionServices()
}

/// Handling of a NAL unit by its type, on its way into a sample (ISO/IEC 14496-15 §5.3.2, §8.3.2).
enum NALUnitFate {
  case keep
  /// A slice of a frame that others may refer to.
  case keepReference
  /// A slice of a frame that no other refers to.
  case keepDisposable
  /// A slice at which decoding can start.
  case keepSync
  /// Supplemental messages, after a NAL unit header of `headerLength` bytes.
  case keepMessages(headerLength: Int)
  /// Belongs in the sample entry.
  case parameterSet
  /// Delimiters and filler, which are not stored.
  case drop
}

/// Most parameter sets of one kind in a configuration. H.264 and HEVC have at most 32 sequence parameter sets; encoders
/// send only a few picture parameter sets.
let maximumParameterSets = 32

/// Largest parameter set in bytes: a record has 16 bits for its length.
let maximumParameterSetSize = 65_535

/// Iterates over the NAL units of a sample, each after its length (ISO/IEC 14496-15 §5.3.2). Reads headers only.
struct LengthPrefixedNALUnits {
  private let buffer: ByteBuffer
  private let lengthSize: Int
  private var index: Int
  private let end: Int

  /// `lengthSize` is 1, 2 or 4.
  init(_ buffer: ByteBuffer, lengthSize: Int) {
    self.buffer = buffer
    self.lengthSize = lengthSize
    index = buffer.readerIndex
    end = buffer.writerIndex
  }

  /// Index of the first byte after the length, and number of bytes after it. Nil at the end. Empty units are returned
  /// with length 0.
  mutating func next() throws(CodecError) -> (index: Int, length: Int)? {
    guard index < end else { return nil }
    let length: Int? =
      switch lengthSize {
      case 1: buffer.getInteger(at: index, as: UInt8.self).map(Int.init)
      case 2: buffer.getInteger(at: index, as: UInt16.self).map(Int.init)
      default: buffer.getInteger(at: index, as: UInt32.self).map(Int.init)
      }
    guard let length else {
      throw CodecError(
        .truncated, "the access unit ends within a NAL unit's length", offset: index &- buffer.readerIndex)
    }
    let start = index &+ lengthSize
    guard length <= end &- start else {
      throw CodecError(
        .truncated, "a NAL unit of \(length) bytes, of which \(end &- start) are there",
        offset: index &- buffer.readerIndex)
    }
    index = start &+ length
    return (start, length)
  }
}

/// Iterates over the NAL units of a byte stream with start codes of three or four bytes (ITU-T H.264 Annex B).
struct AnnexBNALUnits {
  private let bytes: [UInt8]
  private var index: Int

  init(_ buffer: ByteBuffer) {
    bytes = Array(buffer.readableBytesView)
    index = 0
    index = startCode(from: 0)?.end ?? bytes.count
  }

  /// The bytes of the next unit without trailing zeros; nil at the end. Never empty.
  mutating func next() -> ArraySlice<UInt8>? {
    while index < bytes.count {
      let start = index
      let code = startCode(from: start)
      var end = code?.start ?? bytes.count
      index = code?.end ?? bytes.count
      while end > start, bytes[end - 1] == 0 { end -= 1 }
      if end > start { return bytes[start..<end] }
    }
    return nil
  }

  private func startCode(from start: Int) -> (start: Int, end: Int)? {
    bytes.withUnsafeBufferPointer { bytes in
      var third = start + 2
      while third < bytes.count {
        // Most bytes are above 1. Then no start code ends here or at the next two bytes.
        switch bytes[third] {
        case 0: third += 1
        case 1:
          if bytes[third - 1] == 0, bytes[third - 2] == 0 { return (third - 2, third + 1) }
          third += 3
        default: third += 3
        }
      }
      return nil
    }
  }
}

/// The first two bytes of a NAL unit. The second is 0 if there is none, and has a meaning in HEVC only.
struct NALUnitHeader {
  let first: UInt8
  let second: UInt8

  init(first: UInt8, second: UInt8) {
    self.first = first
    self.second = second
  }

  /// Nil for an empty unit.
  init?(_ payload: ByteBuffer, at index: Int, length: Int) {
    guard length > 0, let first = payload.getInteger(at: index, as: UInt8.self) else { return nil }
    self.first = first
    second = length > 1 ? payload.getInteger(at: index &+ 1) ?? 0 : 0
  }
}

/// Facts from all slices of an access unit.
private struct Slices {
  private var anySync = false
  var messages = SupplementalMessages()
  private var anyDisposable = false
  private var anyReference = false

  /// Decoding can start here.
  var areSync: Bool { anySync || messages.isRecoveryPoint }

  /// A frame may have one field that others refer to and one that they do not. Both count.
  var areDisposable: Bool { anyDisposable && !anyReference && !areSync }

  func describe(_ unit: inout AccessUnit) {
    unit.isSync = areSync
    unit.isDisposable = areDisposable
    unit.isGradualRefresh = messages.isGradualRefresh && !areSync
    unit.masteringDisplay = messages.masteringDisplay
    unit.lightLevel = messages.lightLevel
    unit.captions = messages.captions
  }

  mutating func note(_ fate: NALUnitFate) {
    switch fate {
    case .keepSync: anySync = true
    case .keepReference: anyReference = true
    case .keepDisposable: anyDisposable = true
    case .keep, .keepMessages, .parameterSet, .drop: break
    }
  }

}

/// Converts a publisher's access unit to a sample; the same for H.264 and HEVC.
enum NALUnits {
  /// If nothing has to change, it costs one pass over the lengths and headers.
  static func accessUnit(
    _ payload: ByteBuffer, lengthSize: Int, fate: (NALUnitHeader) -> NALUnitFate
  ) throws(CodecError) -> AccessUnit {
    guard lengthSize == 1 || lengthSize == 2 || lengthSize == 4 else {
      throw CodecError(.invalid, "NAL unit lengths of \(lengthSize) bytes; only 1, 2 and 4 exist")
    }
    var units = LengthPrefixedNALUnits(payload, lengthSize: lengthSize)
    var unit = AccessUnit(payload: payload, isSync: false, parameterSets: [])
    var kept = 0
    var dropped = false
    var slices = Slices()
    while let (index, length) = try units.next() {
      guard let header = NALUnitHeader(payload, at: index, length: length) else {
        dropped = true
        continue
      }
      let fate = fate(header)
      switch fate {
      case .keep, .keepReference, .keepDisposable, .keepSync, .keepMessages:
        kept &+= length &+ 4
        slices.note(fate)
        if case .keepMessages(let headerLength) = fate,
          let bytes = payload.getBytes(at: index, length: min(length, SupplementalMessages.limit))
        {
          slices.messages.read(bytes, headerLength: headerLength)
        }
      case .parameterSet:
        dropped = true
        if unit.parameterSets.count < maximumParameterSets, length <= maximumParameterSetSize,
          let set = payload.getBytes(at: index, length: length)
        {
          unit.parameterSets.append(set)
        }
      case .drop: dropped = true
      }
    }
    slices.describe(&unit)
    guard dropped || lengthSize != 4 else { return unit }
    var rewritten = ByteBuffer()
    rewritten.reserveCapacity(kept)
    units = LengthPrefixedNALUnits(payload, lengthSize: lengthSize)
    while let (index, length) = try units.next() {
      guard let header = NALUnitHeader(payload, at: index, length: length) else { continue }
      switch fate(header) {
      case .parameterSet, .drop: continue
      case .keep, .keepReference, .keepDisposable, .keepSync, .keepMessages:
        rewritten.writeInteger(UInt32(truncatingIfNeeded: length))
        if let bytes = payload.getSlice(at: index, length: length) { rewritten.writeImmutableBuffer(bytes) }
      }
    }
    unit.payload = rewritten
    return unit
  }

  static func accessUnit(annexB payload: ByteBuffer, fate: (NALUnitHeader) -> NALUnitFate) -> AccessUnit {
    var units = AnnexBNALUnits(payload)
    var unit = AccessUnit(payload: ByteBuffer(), isSync: false, parameterSets: [])
    unit.payload.reserveCapacity(payload.readableBytes + 16)
    var slices = Slices()
    while let nal = units.next() {
      guard let first = nal.first else { continue }
      let fate = fate(NALUnitHeader(first: first, second: nal.dropFirst().first ?? 0))
      switch fate {
      case .drop: continue
      case .parameterSet:
        if unit.parameterSets.count < maximumParameterSets, nal.count <= maximumParameterSetSize {
          unit.parameterSets.append(Array(nal))
        }
      case .keep, .keepReference, .keepDisposable, .keepSync, .keepMessages:
        slices.note(fate)
        if case .keepMessages(let headerLength) = fate {
          slices.messages.read(Array(nal.prefix(SupplementalMessages.limit)), headerLength: headerLength)
        }
        unit.payload.writeInteger(UInt32(truncatingIfNeeded: nal.count))
        unit.payload.writeBytes(nal)
      }
    }
    slices.describe(&unit)
    return unit
  }
}
