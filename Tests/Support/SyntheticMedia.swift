package import FMP4
internal import NIOCore

/// Streams made of arithmetic: tracks, samples and times that tests can predict.
package enum SyntheticMedia {
  /// What `ffmpeg -f lavfi -i testsrc2=s=320x180:r=30 -c:v libx264 -bf 2` wrote as avcC.
  package static let h264Record: [UInt8] = hex(
    "0164000dffe1001a6764000dacd941419f9f0110000003001000000303c0f142996001000668ebe3cb22c0fdf8f800")

  /// What `ffmpeg -f lavfi -i testsrc2 -c:v libsvtav1` wrote as av1C.
  package static let av1Record: [UInt8] = hex("81010c000a0e0000000cc4ff6736be4404040410")

  /// What `ffmpeg -f lavfi -i testsrc2=s=1920x1080:r=30 -c:v libx265 -preset ultrafast` wrote as hvcC: Main.
  package static let hevcRecord: [UInt8] = hex(
    "01016000000090000000000078f000fcfdf8f800000f03a00001001840010c01ffff016000000300900000030000030078959409"
      + "a10001002b420101016000000300900000030000030078a003c0801107cb965654a4c2f0168080000003008000000f04"
      + "a2000100064401c073c189")
  /// The same in 640x360 and 10 bits: Main 10.
  package static let hevcMain10Record: [UInt8] = hex(
    "0102200000009000000000005af000fcfdfafa00000f03a00001001840010c01ffff02200000030090000003000003005a959809"
      + "a10001002e42010102200000030090000003000003005aa005020169365959a4932bc05a848804820000030002000003006410"
      + "a2000100074401c172b46240")

  /// HEVC in place of the video.
  package static func hevc(_ record: [UInt8] = hevcRecord) throws -> TrackDescription {
    TrackDescription(
      id: .video, codec: Codec(try HEVC.Configuration(record: ByteBuffer(bytes: record))), timescale: 90_000)
  }

  /// AV1 in place of the video.
  package static func av1() throws -> TrackDescription {
    TrackDescription(
      id: .video, codec: Codec(try AV1.Configuration(record: ByteBuffer(bytes: av1Record))), timescale: 90_000)
  }

  package static func video(timescale: UInt32 = 30_000, frameDuration: UInt32? = 1000) throws -> TrackDescription {
    let configuration = try H264.Configuration(record: ByteBuffer(bytes: h264Record))
    return TrackDescription(id: .video, codec: Codec(configuration), timescale: timescale, frameDuration: frameDuration)
  }

  /// AAC-LC, 48 kHz, stereo.
  package static func audio(_ id: TrackID = .audio) throws -> TrackDescription {
    let configuration = try AAC.Configuration(record: ByteBuffer(bytes: [0x11, 0x90]))
    return TrackDescription(id: id, codec: Codec(configuration), timescale: 48_000)
  }

  /// AAC-LC, 48 kHz, mono.
  package static func mono() throws -> TrackDescription {
    let configuration = try AAC.Configuration(record: ByteBuffer(bytes: [0x11, 0x88]))
    return TrackDescription(id: .audio, codec: Codec(configuration), timescale: 48_000)
  }

  /// Frame number `index` of a stream with a key frame every `group` frames; its bytes are the number's last byte.
  /// `isSteady`: it states its duration, as frames on a known grid do.
  package static func frame(
    _ index: Int, group: Int = 60, duration: Int64 = 1000, offset: Int32 = 0, size: Int = 100, start: Int64 = 0,
    isSteady: Bool = false
  ) -> Sample {
    Sample(
      track: .video, decodeTime: start + Int64(index) * duration, compositionOffset: offset,
      duration: isSteady ? UInt32(duration) : nil, isSync: index % group == 0,
      payload: ByteBuffer(repeating: UInt8(truncatingIfNeeded: index), count: size))
  }

  /// Audio frame number `index`, 1024 ticks each.
  package static func audio(_ index: Int, size: Int = 20, start: Int64 = 0) -> Sample {
    Sample(
      track: .audio, decodeTime: start + Int64(index) * 1024, duration: 1024, isSync: true,
      payload: ByteBuffer(repeating: UInt8(truncatingIfNeeded: index), count: size))
  }

  /// Frames at 30 and audio at 46.875 frames a second, interleaved by decode time, as a publisher sends them.
  package static func interleaved(
    seconds: Int, group: Int = 60, offset: Int32 = 0, isSteady: Bool = false
  ) -> [Sample] {
    let frames = (0..<seconds * 30).map { frame($0, group: group, offset: offset, isSteady: isSteady) }
    let audioSamples = (0..<seconds * 48_000 / 1024).map { audio($0) }
    return (frames + audioSamples).sorted { a, b in
      let (timeA, timeB) = (time(a), time(b))
      return timeA == timeB ? a.track < b.track : timeA < timeB
    }
  }

  /// The same with further tracks of audio, whose samples follow the first one's and differ from it.
  package static func interleaved(
    seconds: Int, group: Int = 60, offset: Int32 = 0, isSteady: Bool = false, furtherAudios: [TrackID]
  ) -> [Sample] {
    interleaved(seconds: seconds, group: group, offset: offset, isSteady: isSteady).flatMap { sample in
      guard sample.track == .audio else { return [sample] }
      return [sample]
        + furtherAudios.map { track in
          var further = sample
          further.track = track
          further.payload = ByteBuffer(repeating: 0xFF, count: 20 + Int(track.rawValue))
          return further
        }
    }
  }

  private static func time(_ sample: Sample) -> MediaTime {
    MediaTime(ticks: sample.decodeTime, timescale: sample.track == .video ? 30_000 : 48_000)
  }

  package static func hex(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in text {
      guard let value = character.hexDigitValue.map({ UInt8($0) }) else { continue }
      if let first = high {
        bytes.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return bytes
  }
}
