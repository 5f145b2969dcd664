import FMP4
import Testing

/// What a captured session holds, as FFmpeg's ffprobe 8.1 reads its media (`Tests/Fixtures/README.md`). Left out is an
/// empty packet that ffprobe makes of a channel layout.
struct PublisherFixture: Sendable, CustomTestStringConvertible {
  struct Video: Sendable {
    var codec: CodecID
    var width, height: Int
    var samples, keys: Int
    /// Of the first frame, in milliseconds of the wire.
    var decode, shown: Int64

    init(
      _ codec: CodecID, _ width: Int, _ height: Int, samples: Int, keys: Int, decode: Int64, shown: Int64
    ) {
      (self.codec, self.width, self.height) = (codec, width, height)
      (self.samples, self.keys, self.decode, self.shown) = (samples, keys, decode, shown)
    }
  }

  struct Audio: Sendable {
    var codec: CodecID
    var sampleRate: UInt32
    var channels: Int
    var samples: Int
    /// Decode time of the first frame, in milliseconds of the wire.
    var first: Int64

    init(_ codec: CodecID, _ sampleRate: UInt32, _ channels: Int, samples: Int, first: Int64) {
      (self.codec, self.sampleRate, self.channels) = (codec, sampleRate, channels)
      (self.samples, self.first) = (samples, first)
    }
  }

  /// The file's name without its ending, and the stream's name.
  var name: String
  var video: Video?
  var audio: [Audio]

  init(_ name: String, video: Video?, audio: [Audio]) {
    (self.name, self.video, self.audio) = (name, video, audio)
  }

  var testDescription: String { name }

  static let all: [PublisherFixture] = [
    .init(
      "ffmpeg-4.2-bframes-aac44", video: .init(.h264, 160, 90, samples: 66, keys: 2, decode: 0, shown: 67),
      audio: [.init(.aac, 44100, 1, samples: 92, first: 44)]),
    .init(
      "ffmpeg-4.2-h264-aac", video: .init(.h264, 160, 90, samples: 45, keys: 1, decode: 21, shown: 21),
      audio: [.init(.aac, 48000, 2, samples: 86, first: 0)]),
    .init(
      "ffmpeg-4.2-video-only", video: .init(.h264, 160, 90, samples: 68, keys: 2, decode: 0, shown: 0),
      audio: []),
    .init(
      "ffmpeg-5.1-audio-only", video: nil,
      audio: [.init(.aac, 48000, 2, samples: 155, first: 0)]),
    .init(
      "ffmpeg-5.1-bframes", video: .init(.h264, 160, 90, samples: 66, keys: 2, decode: 0, shown: 67),
      audio: [.init(.aac, 48000, 2, samples: 102, first: 46)]),
    .init(
      "ffmpeg-5.1-h264-aac", video: .init(.h264, 160, 90, samples: 44, keys: 1, decode: 21, shown: 21),
      audio: [.init(.aac, 48000, 2, samples: 84, first: 0)]),
    .init(
      "ffmpeg-5.1-video-only", video: .init(.h264, 160, 90, samples: 68, keys: 2, decode: 0, shown: 0),
      audio: []),
    .init(
      "ffmpeg-8.1-av1-opus", video: .init(.av1, 160, 90, samples: 17, keys: 1, decode: 7, shown: 7),
      audio: [.init(.opus, 48000, 2, samples: 35, first: 0)]),
    .init(
      "ffmpeg-8.1-h264-aac", video: .init(.h264, 160, 90, samples: 44, keys: 1, decode: 21, shown: 21),
      audio: [.init(.aac, 48000, 2, samples: 84, first: 0)]),
    .init(
      "ffmpeg-8.1-hevc-aac", video: .init(.hevc, 160, 90, samples: 47, keys: 1, decode: 0, shown: 80),
      audio: [.init(.aac, 48000, 2, samples: 86, first: 59)]),
    .init(
      "ffmpeg-8.1-opus-only", video: nil,
      audio: [.init(.opus, 48000, 2, samples: 126, first: 0)]),
    .init(
      "ffmpeg-8.1-two-audio", video: .init(.h264, 160, 90, samples: 32, keys: 1, decode: 23, shown: 23),
      audio: [.init(.aac, 48000, 2, samples: 60, first: 2), .init(.aac, 44100, 2, samples: 55, first: 0)]),
    .init(
      "ffmpeg-9.0-av1-aac", video: .init(.av1, 160, 90, samples: 24, keys: 1, decode: 21, shown: 21),
      audio: [.init(.aac, 48000, 2, samples: 45, first: 0)]),
    .init(
      "ffmpeg-9.0-h264-aac-key", video: .init(.h264, 160, 90, samples: 57, keys: 1, decode: 0, shown: 80),
      audio: [.init(.aac, 48000, 2, samples: 105, first: 59)]),
    .init(
      "ffmpeg-9.0-hevc-bframes", video: .init(.hevc, 160, 90, samples: 57, keys: 1, decode: 0, shown: 67),
      audio: [.init(.aac, 48000, 2, samples: 87, first: 46)]),
    .init(
      "ffmpeg-9.0-short-session", video: .init(.h264, 160, 90, samples: 30, keys: 1, decode: 21, shown: 21),
      audio: [.init(.aac, 48000, 2, samples: 58, first: 0)]),
    .init(
      "gstreamer-1.22-rtmp2sink-bframes", video: .init(.h264, 160, 90, samples: 52, keys: 2, decode: 0, shown: 9),
      audio: [.init(.aac, 44100, 1, samples: 88, first: 1)]),
    .init(
      "gstreamer-1.22-rtmp2sink-video-only", video: .init(.h264, 160, 90, samples: 86, keys: 2, decode: 0, shown: 0),
      audio: []),
    .init(
      "gstreamer-1.22-rtmp2sink", video: .init(.h264, 160, 90, samples: 50, keys: 1, decode: 43, shown: 43),
      audio: [.init(.aac, 48000, 2, samples: 94, first: 0)]),
    .init(
      "gstreamer-1.22-rtmpsink-audio-only", video: nil,
      audio: [.init(.aac, 48000, 2, samples: 154, first: 0)]),
    .init(
      "gstreamer-1.22-rtmpsink-librtmp", video: .init(.h264, 160, 90, samples: 50, keys: 1, decode: 1, shown: 1),
      audio: [.init(.aac, 48000, 2, samples: 94, first: 0)]),
    .init("liquidsoap-2.1", video: nil, audio: [.init(.aac, 44100, 2, samples: 144, first: 0)]),
    .init(
      "mpv-0.35", video: .init(.h264, 160, 90, samples: 62, keys: 2, decode: 21, shown: 21),
      audio: [.init(.aac, 48000, 1, samples: 118, first: 0)]),
    .init(
      "nginx-rtmp-1.2.2-relay-hevc", video: nil,
      audio: [.init(.aac, 48000, 2, samples: 262, first: 80)]),
    .init(
      "nginx-rtmp-1.2.2-relay", video: .init(.h264, 160, 90, samples: 44, keys: 1, decode: 21, shown: 21),
      audio: [.init(.aac, 48000, 2, samples: 84, first: 0)]),
    .init(
      "obs-29.0-ntsc-aac44", video: .init(.h264, 160, 90, samples: 66, keys: 2, decode: 0, shown: 66),
      audio: [.init(.aac, 44100, 2, samples: 92, first: 66)]),
    .init(
      "obs-29.0", video: .init(.h264, 160, 90, samples: 66, keys: 1, decode: 0, shown: 66),
      audio: [.init(.aac, 48000, 2, samples: 100, first: 66)]),
    .init(
      "vlc-3.0", video: .init(.h264, 160, 90, samples: 45, keys: 1, decode: 22, shown: 22),
      audio: [.init(.aac, 48000, 2, samples: 85, first: 0)]),
  ]
}
