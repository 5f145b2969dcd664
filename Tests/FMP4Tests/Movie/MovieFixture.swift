import FMP4
import Testing

/// What an MP4 file of another program holds, as FFmpeg's ffprobe 8.1 reads it (`Tests/Fixtures/README.md`). Two differ: where
/// composition offsets are negative (`cmaf`), ffprobe lifts all presentation times, and `shown` is what `trun` says. VLC's
/// `stss` lists two of its four key frames, and the table tells of these.
struct MovieFixture: Sendable, CustomTestStringConvertible {
  struct Track: Sendable {
    var codec: CodecID
    /// Width and height, or Hz and channels.
    var shape: [Int]
    var timescale: UInt32
    var samples, keys: Int
    /// Presentation time of the first sample after edits, in ticks.
    var shown: Int64
    /// From the first decode time to the end of the last sample, in ticks.
    var length: Int64
    /// Where the last key frame lies in the file, and its size, in bytes.
    var lastKey: (offset: UInt64, size: Int)

    init(
      _ codec: CodecID, _ shape: [Int], timescale: UInt32, samples: Int, keys: Int, shown: Int64, length: Int64,
      lastKey: (UInt64, Int)
    ) {
      (self.codec, self.shape, self.timescale) = (codec, shape, timescale)
      (self.samples, self.keys, self.shown, self.length) = (samples, keys, shown, length)
      self.lastKey = lastKey
    }
  }

  /// The file's name.
  var name: String
  /// In the order of the file.
  var tracks: [Track]

  init(_ name: String, _ tracks: [Track]) { (self.name, self.tracks) = (name, tracks) }

  var testDescription: String { name }

  var seconds: Double { tracks.map { Double($0.length) / Double($0.timescale) }.max() ?? 0 }

  static let fragmented: [MovieFixture] = [
    .init(
      "ffmpeg-4.2-fragments-bframes.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 30000, samples: 75, keys: 3,
          shown: 2002, length: 75075, lastKey: (28625, 1412)),
        .init(
          .aac, [44100, 2], timescale: 44100, samples: 109, keys: 109,
          shown: 0, length: 113193, lastKey: (36576, 353)),
      ]),
    .init(
      "ffmpeg-5.1-delay-moov.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 30000, samples: 75, keys: 3,
          shown: 0, length: 75075, lastKey: (30109, 1413)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 119, keys: 119,
          shown: -1024, length: 121024, lastKey: (38289, 7)),
      ]),
    .init(
      "ffmpeg-5.1-fragments.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 12800, samples: 63, keys: 3,
          shown: 0, length: 32530, lastKey: (36565, 1603)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 119, keys: 119,
          shown: 0, length: 121024, lastKey: (44703, 7)),
      ]),
    .init(
      "ffmpeg-8.1-av1-opus-fragments.mp4",
      [
        .init(
          .av1, [160, 90], timescale: 12800, samples: 63, keys: 3,
          shown: 0, length: 32340, lastKey: (47524, 1898)),
        .init(
          .opus, [48000, 2], timescale: 48000, samples: 126, keys: 126,
          shown: 0, length: 120312, lastKey: (55492, 230)),
      ]),
    .init(
      "ffmpeg-8.1-cmaf-hevc.mp4",
      [
        .init(
          .hevc, [160, 90], timescale: 30000, samples: 75, keys: 3,
          shown: 0, length: 75075, lastKey: (33372, 1523)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 119, keys: 119,
          shown: 0, length: 121024, lastKey: (42206, 7)),
      ]),
    .init(
      "ffmpeg-9.0-cmaf-global-sidx.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 12800, samples: 63, keys: 3,
          shown: 0, length: 32256, lastKey: (35196, 1428)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 119, keys: 119,
          shown: 0, length: 121024, lastKey: (38309, 7)),
      ]),
    .init(
      "ffmpeg-9.0-dash-av1.mp4",
      [
        .init(
          .av1, [160, 90], timescale: 12800, samples: 63, keys: 3,
          shown: 0, length: 32256, lastKey: (26959, 1668))
      ]),
    .init(
      "gstreamer-1.22-mp4mux-fragments.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 2500, samples: 63, keys: 3,
          shown: 200, length: 6300, lastKey: (31184, 682)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 118, keys: 118,
          shown: 0, length: 120832, lastKey: (35011, 128)),
      ]),
    .init(
      "packager-3.8-on-demand.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 12800, samples: 100, keys: 4,
          shown: 0, length: 51200, lastKey: (32895, 1162))
      ]),
    .init(
      "packager-3.8-segments-audio.mp4",
      [
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 189, keys: 189,
          shown: -1024, length: 193024, lastKey: (26600, 108))
      ]),
    .init(
      "packager-3.8-segments-video.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 12800, samples: 100, keys: 4,
          shown: 0, length: 51200, lastKey: (33031, 1162))
      ]),
  ]

  static let finished: [MovieFixture] = [
    .init(
      "ffmpeg-4.2-moov-last.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 12800, samples: 63, keys: 3,
          shown: 0, length: 32256, lastKey: (33405, 1608)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 119, keys: 119,
          shown: -1024, length: 121024, lastKey: (41462, 7)),
      ]),
    .init(
      "ffmpeg-5.1-audio-only.m4a",
      [
        .init(
          .aac, [44100, 2], timescale: 44100, samples: 109, keys: 109,
          shown: -1024, length: 111274, lastKey: (14887, 134))
      ]),
    .init(
      "ffmpeg-5.1-faststart-bframes.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 30000, samples: 75, keys: 3,
          shown: 0, length: 75075, lastKey: (31103, 1413)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 119, keys: 119,
          shown: -1024, length: 121024, lastKey: (39283, 7)),
      ]),
    .init(
      "ffmpeg-5.1-video-only.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 12800, samples: 63, keys: 3,
          shown: 0, length: 32256, lastKey: (18282, 1428))
      ]),
    .init(
      "ffmpeg-8.1-hybrid.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 12800, samples: 63, keys: 3,
          shown: 0, length: 32530, lastKey: (36785, 1603)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 119, keys: 119,
          shown: 0, length: 121024, lastKey: (44919, 7)),
      ]),
    .init(
      "ffmpeg-9.0-hevc-moov-last.mp4",
      [
        .init(
          .hevc, [160, 90], timescale: 30000, samples: 75, keys: 3,
          shown: 0, length: 75075, lastKey: (27961, 1523)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 119, keys: 119,
          shown: -1024, length: 121024, lastKey: (36804, 7)),
      ]),
    .init(
      "ffmpeg-9.0-negative-offsets.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 12800, samples: 63, keys: 3,
          shown: 0, length: 32256, lastKey: (35518, 1428)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 119, keys: 119,
          shown: -1024, length: 121024, lastKey: (38631, 7)),
      ]),
    .init(
      "ffmpeg-9.0-offset-audio.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 12800, samples: 63, keys: 3,
          shown: 0, length: 32256, lastKey: (29753, 1428)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 100, keys: 100,
          shown: 18176, length: 102400, lastKey: (32864, 116)),
      ]),
    .init(
      "gstreamer-1.22-mp4mux-faststart.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 2500, samples: 63, keys: 3,
          shown: 0, length: 6300, lastKey: (26488, 682)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 118, keys: 118,
          shown: 0, length: 120832, lastKey: (32619, 128)),
      ]),
    .init(
      "gstreamer-1.22-mp4mux-opus.mp4",
      [
        .init(
          .hevc, [160, 90], timescale: 2500, samples: 63, keys: 3,
          shown: 0, length: 6300, lastKey: (31073, 1543)),
        .init(
          .opus, [48000, 2], timescale: 48000, samples: 127, keys: 127,
          shown: 0, length: 121608, lastKey: (38359, 140)),
      ]),
    .init(
      "gstreamer-1.22-mp4mux.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 2500, samples: 63, keys: 3,
          shown: 0, length: 6300, lastKey: (23870, 682)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 118, keys: 118,
          shown: 0, length: 120832, lastKey: (30001, 128)),
      ]),
    .init(
      "handbrake-1.6-optimised.mp4",
      [
        .init(
          .h264, [160, 90], timescale: 90000, samples: 100, keys: 1,
          shown: 0, length: 360000, lastKey: (4290, 1882)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 189, keys: 189,
          shown: -1024, length: 193536, lastKey: (66280, 153)),
      ]),
    .init(
      "handbrake-1.6.mp4",
      [
        .init(
          .hevc, [160, 90], timescale: 90000, samples: 100, keys: 1,
          shown: 0, length: 360000, lastKey: (44, 1418)),
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 189, keys: 189,
          shown: -1024, length: 193536, lastKey: (63594, 153)),
      ]),
    .init(
      "vlc-3.0.mp4",
      [
        .init(
          .aac, [48000, 2], timescale: 48000, samples: 184, keys: 184,
          shown: 0, length: 188415, lastKey: (66659, 135)),
        .init(
          .h264, [160, 90], timescale: 90000, samples: 99, keys: 2,
          shown: 0, length: 356400, lastKey: (38719, 1639)),
      ]),
  ]
}
