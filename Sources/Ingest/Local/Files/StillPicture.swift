internal import CLibAV
package import FMP4
internal import LibAV

/// A picture that was encoded once: two seconds of H.264, and a frame of silence as AAC. A `StillSource` repeats them
/// for as long as it runs, so no encoder runs once this is made. It has no B-frames.
package struct StillPicture: Sendable {
  /// Ticks per second of the video, as the test pattern has them.
  static let timescale: UInt32 = 30_000
  /// Ticks per frame: ten frames in a second.
  static let frameDuration: UInt32 = 3_000
  /// Frames from one key frame to the next.
  static let framesPerKeyFrame = 10
  /// Frames of one pass.
  static let framesPerPass = 2 * framesPerKeyFrame
  /// Hz; also the audio's timescale.
  static let sampleRate: UInt32 = 48_000

  /// Time from one key frame to the next: a second.
  package static let keyFrameInterval = MediaTime(
    ticks: Int64(framesPerKeyFrame) * Int64(frameDuration), timescale: timescale)

  /// The video, then the audio.
  package let tracks: [TrackDescription]
  /// The frames of one pass, each as long as the others. The first one is at 0; it is a key frame.
  package let video: [Sample]
  /// A frame of silence, at 0. It can follow itself.
  package let silence: Sample

  /// A picture in a file of this machine: PNG, JPEG, WebP or BMP. It is scaled down to 1920×1080 at most and turned as
  /// its Exif says. Blocks for as long as encoding takes: a second for a large one.
  ///
  /// Throws if the file cannot be read, has more than 32 MiB or 8192×8192 pixels, is damaged or too small, or if
  /// libavcodec does not work here.
  package init(path: String) throws {
    try CaptureLibrary.require()
    let (frame, matrix) = try PictureReader.read(path)
    try self.init(frame, matrix)
  }

  /// The first frame of the test pattern, for when no encoder may run. It has the size that `settings` say. The date
  /// and time in it are those of `wallTime`, and stand still. Throws if libavcodec does not work here.
  package init(testCard settings: TestSourceSettings, at wallTime: WallTime = WallTime(nanoseconds: 0)) throws {
    try CaptureLibrary.require()
    let canvas = try TestCanvas(
      settings: settings, schedule: TestSchedule(wallStart: wallTime, rate: settings.frameRate))
    try canvas.draw(0)
    let frame = try VideoFrame()
    try LibAVError.check(withExtendedLifetime(canvas) { av_frame_ref(frame.frame, canvas.frame) }, "allocate a frame")
    try self.init(try frame.turned(by: settings.rotation), .bt709)
  }

  /// The frame is planar 4:2:0 with limited range and even sides.
  private init(_ frame: VideoFrame, _ matrix: VideoEncoder.Format.Matrix) throws {
    let (codec, samples) = try StillEncoder.video(of: frame, matrix: matrix)
    let (audioCodec, silence) = try StillEncoder.silence()
    tracks = [
      TrackDescription(id: .video, codec: codec, timescale: Self.timescale, frameDuration: Self.frameDuration),
      TrackDescription(id: .audio, codec: audioCodec, timescale: Self.sampleRate),
    ]
    video = samples
    self.silence = silence
  }
}
