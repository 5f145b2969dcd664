internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// Makes access units of the tags of one track of H.264 or HEVC. A tag should be one. Some publishers send each NAL unit, or each
/// slice, in a tag of its own; then tags are joined up to the one with which the next frame begins. As long as nothing says so, a
/// tag is passed on as it comes.
struct FLVFrames {
  /// An access unit. Time and composition offset (nanoseconds) and the arrival are those of its first tag with a slice.
  struct Frame {
    var payload: ByteBuffer
    var time: Int64
    var composition: Int64
    var now: MonotonicTime
  }

  /// NAL units whose frame was passed on before them.
  struct Late {
    /// With lengths of four bytes. Nil if they cannot be kept.
    var units: ByteBuffer?
    /// A frame is lost without them.
    var hasSlice = true
  }

  private enum Form {
    /// Nothing says otherwise. `isProven`: a frame whose slices might have come alone was whole.
    case whole(isProven: Bool)
    /// A NAL unit came that belongs to the frame behind it: slices may come alone, too. The next frame tells.
    case unsure
    case pieces
  }

  /// A frame of more bytes is none. The unfinished ones of all tracks have as many.
  static let longestFrame = 8 << 20

  /// Nanoseconds for which the slices of a frame are waited for where the next frame does not come.
  static let patience: Int64 = 200_000_000

  private let codec: any CodecConfiguration.Type
  let coding: CodecID
  /// Bytes of the length before a NAL unit.
  private var lengthSize = 4
  private var form = Form.whole(isProven: false)
  /// What came before the slices of the next frame.
  private var leading = ByteBuffer()
  private var frame: Frame?
  /// The time of the newest frame, if its first slice has come.
  private var begun: Int64?
  /// Parameter sets that frames have, while no sequence header has come.
  private var parameters: VideoParameterSets?

  init(_ coding: CodecID) {
    (self.coding, codec, parameters) = (coding, coding.type, VideoParameterSets(coding))
  }

  var heldBytes: Int { leading.readableBytes &+ (frame?.payload.readableBytes ?? 0) }

  /// When the frame that is held is not waited for any longer.
  var deadline: MonotonicTime? { frame.map { $0.now &+ Self.patience } }

  /// Takes a sequence header that is used: the parameter sets of frames are read with it.
  mutating func configure(_ record: ByteBuffer) {
    parameters = nil
    let place = coding == .hevc ? 21 : 4
    guard let byte: UInt8 = record.getInteger(at: record.readerIndex &+ place) else { return }
    lengthSize = Int(byte & 3) &+ 1
  }

  /// The configuration that a frame states, where no sequence header has come. Nil if it states no other one than before.
  mutating func record(inFrame payload: ByteBuffer) throws(CodecError) -> ByteBuffer? {
    guard var sets = parameters else { return nil }
    defer { parameters = sets }
    guard try sets.receive(try accessUnit(payload).parameterSets), let codec = sets.codec else { return nil }
    return ByteBuffer(bytes: codec.record())
  }

  private func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit {
    coding == .hevc
      ? try HEVC.accessUnit(payload, lengthSize: lengthSize) : try H264.accessUnit(payload, lengthSize: lengthSize)
  }

  /// Takes the content of a tag. Returns the frames that are whole with it.
  mutating func receive(_ tag: Frame, late: inout [Late]) -> [Frame] {
    let units = FramedNALUnits(tag.payload, of: codec, lengthSize: lengthSize)
    var tag = tag
    tag.payload = units.payload
    guard let beginning = units.beginning else {
      if units.isEmpty {
        if frame == nil { return [tag] }
        late.append(Late())
      } else if leading.readableBytes > 0 {
        lead(tag)
      } else {
        join(tag, hasSlice: false, late: &late)
      }
      return []
    }
    guard units.hasSlice else {
      if case .whole(isProven: false) = form { form = .unsure }
      lead(tag)
      return [frame.take()].compactMap(\.self)
    }
    if beginning == .slice, goesOn(tag) {
      form = .pieces
      join(tag, hasSlice: true, late: &late)
      return []
    }
    begun = beginning == .slice ? nil : tag.time
    let before = frame.take()
    // The frame that was held has had no further slice.
    if before != nil, case .unsure = form { form = .whole(isProven: true) }
    if leading.readableBytes > 0 {
      leading.writeImmutableBuffer(tag.payload)
      (tag.payload, leading) = (leading, ByteBuffer())
    }
    if case .whole = form { return [before, tag].compactMap(\.self) }
    frame = tag
    return [before].compactMap(\.self)
  }

  /// Whether a tag that begins with a further slice belongs to the frame before it. Where frames come in pieces its time may be wrong.
  private func goesOn(_ tag: Frame) -> Bool {
    if case .pieces = form, frame != nil { return true }
    return tag.time == begun
  }

  /// The frame that is held: nothing more of it comes.
  mutating func finish() -> Frame? { frame.take() }

  /// Drops what is unfinished.
  mutating func drop() { (frame, leading) = (nil, ByteBuffer()) }

  private mutating func lead(_ tag: Frame) {
    leading.writeImmutableBuffer(tag.payload)
    if leading.readableBytes > Self.longestFrame { leading = ByteBuffer() }
  }

  /// Adds a tag to the frame before it.
  private mutating func join(_ tag: Frame, hasSlice: Bool, late: inout [Late]) {
    guard frame != nil else {
      return late.append(Late(units: (try? accessUnit(tag.payload))?.payload, hasSlice: hasSlice))
    }
    frame?.payload.writeImmutableBuffer(tag.payload)
    guard let bytes = frame?.payload.readableBytes, bytes > Self.longestFrame else { return }
    frame = nil
    late.append(Late())
  }
}
