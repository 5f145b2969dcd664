internal import Publishing
internal import Base
internal import CLibAV
internal import FMP4
internal import LibAV
internal import NIOCore

/// The video or audio track of a file, and the conversion of its packets to samples.
struct FileTrack {
  private(set) var description: TrackDescription
  /// Index in libavformat.
  let streamIndex: Int32
  private let path: String
  private let timeBase: AVRational
  /// Video has start codes instead of NAL unit lengths (MPEG-TS).
  private let isStream: Bool
  /// Puts times that the file rounds to milliseconds (Matroska, FLV) back on the grid of the frame rate.
  private var grid: FrameGrid?
  /// Frames that wait for a decode time. Matroska states none; libavformat computes them, but not for the first frames.
  private var undated: [(bytes: ByteBuffer, presentation: Int64, length: Int64)] = []
  private var isDated = false
  /// Unusable video or audio frames that were not reported yet.
  private var broken = 0

  /// Most waiting frames. H.264 and HEVC reorder at most 16.
  private static let longestReordering = 32

  init(_ stream: UnsafeMutablePointer<AVStream>, id: TrackID, path: String) throws {
    guard let parameters = stream.pointee.codecpar?.pointee else { throw FileError.empty(path) }
    self.path = path
    streamIndex = stream.pointee.index
    timeBase = stream.pointee.time_base
    let record = Self.extradata(parameters)
    // avcC and hvcC begin with version 1, and av1C with the same after a marker bit (AV1-ISOBMFF §2.3.3).
    isStream = record.getInteger(at: 0, as: UInt8.self).map { $0 & 127 } != 1
    let codec: Codec
    do throws(CodecError) {
      codec = try Self.codec(parameters, record, isStream: isStream)
    } catch {
      throw error.code == .unsupported
        ? FileError.unsupportedCodec(
          path, kind: id == .video ? "video" : "audio", codec: String(cString: avcodec_get_name(parameters.codec_id)))
        : FileError.invalidCodec(path, reason: "\(error)")
    }
    let average = stream.pointee.avg_frame_rate
    let stated = FrameRate(
      numerator: UInt32(clamping: average.num), denominator: UInt32(clamping: average.den))
    let rate = FrameClock.recognise(stated)
    let isCoarse = timeBase.den <= 1000 && codec.kind == .video
    grid = isCoarse ? FrameGrid(rate: rate) : nil
    let timescale =
      codec.audio?.sampleRate ?? grid?.timescale
      ?? (timeBase.num == 1 ? UInt32(clamping: timeBase.den) : FrameClock.defaultTimescale)
    let frameDuration = rate.flatMap { FrameClock(rate: $0, timescale: timescale).wholeStep }
    description = TrackDescription(
      id: id, codec: codec, timescale: timescale, frameDuration: codec.kind == .video ? frameDuration : nil,
      rotation: codec.kind == .video ? Self.rotation(stream) : .none)
  }

  /// Rotation by the file's matrix (ISO/IEC 14496-12 §8.3.2).
  private static func rotation(_ stream: UnsafeMutablePointer<AVStream>) -> Rotation {
    guard let matrix = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, nil) else { return .none }
    return matrix.withMemoryRebound(to: Int32.self, capacity: 9) { Rotation(a: $0[0], b: $0[1], c: $0[3], d: $0[4]) }
  }

  /// Converts a packet to units. None if it is empty, only prepares a decoder, or must wait for its decode time.
  mutating func units(_ packet: UnsafeMutablePointer<AVPacket>) -> [MediaFile.Unit] {
    guard let data = packet.pointee.data, packet.pointee.size > 0 else { return [] }
    // Truncated, or with a gap that the container reports.
    guard packet.pointee.flags & AV_PKT_FLAG_CORRUPT == 0 else {
      broken += 1
      return []
    }
    let bytes = UnsafeRawBufferPointer(start: data, count: Int(packet.pointee.size))
    let (pts, dts) = (packet.pointee.pts, packet.pointee.dts)
    guard pts != weir_no_time || dts != weir_no_time else { return [] }
    let presentation = pts == weir_no_time ? dts : pts
    if description.kind == .audio { return [audio(bytes, ticks(presentation))].compactMap(\.self) }
    let payload = ByteBuffer(bytes: bytes)
    let length = packet.pointee.duration
    if dts == weir_no_time, !isDated, undated.count < Self.longestReordering {
      undated.append((payload, presentation, length))
      return []
    }
    let decode = dts == weir_no_time ? presentation : dts
    let earlier = dated(before: decode)
    return earlier + [videoUnit(payload, decode, presentation, length)].compactMap(\.self)
  }

  /// The frames that waited, each one step before the next. At the end of a file without any decode time, their
  /// presentation times are used.
  mutating func dated(before decode: Int64?) -> [MediaFile.Unit] {
    isDated = true
    let waiting = undated
    undated = []
    let step = frameSteps
    return waiting.enumerated().compactMap { index, item in
      let time = decode.map { $0 &- Int64((Double(waiting.count - index) * (step ?? Double(item.length))).rounded()) }
      return videoUnit(item.bytes, time ?? item.presentation, item.presentation, item.length)
    }
  }

  /// Number of unusable frames since the last call.
  mutating func takeBroken() -> Int {
    defer { broken = 0 }
    return broken
  }

  /// Ticks of the file between two frames, if the rate is known.
  private var frameSteps: Double? {
    guard let rate = grid?.rate, timeBase.num > 0 else { return nil }
    return Double(timeBase.den) / Double(timeBase.num) / rate.framesPerSecond
  }

  private mutating func videoUnit(
    _ bytes: ByteBuffer, _ decode: Int64, _ presentation: Int64, _ length: Int64
  ) -> MediaFile.Unit? {
    let unit: AccessUnit?
    do throws(CodecError) {
      unit = try isStream ? description.codec.accessUnit(stream: bytes) : description.codec.accessUnit(bytes)
    } catch {
      broken += 1
      return nil
    }
    guard let unit, unit.payload.readableBytes > 0 else { return nil }
    var time = ticks(decode)
    var offset = ticks(presentation) &- time
    var duration = UInt32(clamping: ticks(max(length, 0)))
    if grid != nil, let place = gridPlace(decode, presentation) {
      (time, offset) = (place.decodeTime, Int64(place.compositionOffset))
      duration = place.duration ?? description.frameDuration ?? duration
    }
    return MediaFile.Unit(
      track: description.id, timescale: description.timescale, decodeTime: time,
      compositionOffset: Int32(clamping: offset), duration: duration, isSync: unit.isSync,
      isDisposable: unit.isDisposable, payload: unit.payload)
  }

  private mutating func gridPlace(_ decode: Int64, _ presentation: Int64) -> FrameGrid.Place? {
    let nanoseconds = { [timeBase] (time: Int64) in
      av_rescale_q(time, timeBase, AVRational(num: 1, den: 1000)) &* 1_000_000
    }
    let (decode, presentation) = (nanoseconds(decode), nanoseconds(presentation))
    return grid?.place(decode: decode, composition: presentation &- decode)
  }

  private func audio(_ bytes: UnsafeRawBufferPointer, _ time: Int64) -> MediaFile.Unit? {
    // The priming is before the beginning.
    let raw = Self.withoutADTS(bytes)
    let payload = ByteBuffer(bytes: raw)
    guard let duration = description.codec.duration(of: payload), time &+ Int64(duration) > 0,
      !payload.readableBytesView.isEmpty
    else { return nil }
    return MediaFile.Unit(
      track: description.id, timescale: description.timescale, decodeTime: time, compositionOffset: 0,
      duration: duration, isSync: true, isDisposable: false, payload: payload)
  }

  private func ticks(_ time: Int64) -> Int64 {
    av_rescale_q(time, timeBase, AVRational(num: 1, den: Int32(clamping: description.timescale)))
  }

  // MARK: Codec configuration

  private static func codec(
    _ parameters: AVCodecParameters, _ record: ByteBuffer, isStream: Bool
  ) throws(CodecError) -> Codec {
    guard let id = CodecID(parameters.codec_id), !id.type.isStatedByFrames, id.isCarried else {
      throw CodecError(.unsupported, "a codec that is not passed through")
    }
    if id.kind == .video { return isStream ? try Codec(id, stream: record) : try Codec(id, record: record) }
    return try Codec(id, record: record.readableBytes > 0 ? record : Self.audioSpecificConfig(parameters))
  }

  private static func extradata(_ parameters: AVCodecParameters) -> ByteBuffer {
    guard let bytes = parameters.extradata, parameters.extradata_size > 0 else { return ByteBuffer() }
    return ByteBuffer(bytes: UnsafeRawBufferPointer(start: bytes, count: Int(parameters.extradata_size)))
  }

  // MARK: AAC in ADTS frames, as in MPEG-TS (ISO/IEC 13818-7 §6.2)

  /// The frame without its ADTS header, if it has one.
  private static func withoutADTS(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard bytes.count > 9, bytes[0] == 0xFF, bytes[1] & 0xF6 == 0xF0 else { return bytes }
    let header = bytes[1] & 1 == 0 ? 9 : 7
    let length = Int(bytes[3] & 3) << 11 | Int(bytes[4]) << 3 | Int(bytes[5]) >> 5
    guard length == bytes.count else { return bytes }
    return UnsafeRawBufferPointer(rebasing: bytes[header...])
  }

  /// An AudioSpecificConfig from the values of ADTS (ISO/IEC 14496-3 §1.6.2.1): Low Complexity, rate and channels.
  private static func audioSpecificConfig(_ parameters: AVCodecParameters) -> ByteBuffer {
    let rates: [Int32] = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350]
    guard let rate = rates.firstIndex(of: parameters.sample_rate) else { return ByteBuffer() }
    let channels = parameters.ch_layout.nb_channels
    guard (1...8).contains(channels) else { return ByteBuffer() }
    let configuration = UInt16(channels == 8 ? 7 : channels)
    return ByteBuffer(integer: UInt16(2) << 11 | UInt16(rate) << 7 | configuration << 3)
  }
}
