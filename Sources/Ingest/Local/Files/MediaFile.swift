internal import CLibAV
internal import FMP4
internal import Glibc
internal import LibAV
internal import NIOCore

/// Demuxes a file with libavformat: coded video and audio, one unit after the other. Only regular files of this machine
/// are opened; references in a file are not followed. Used on one thread.
final class MediaFile {
  /// One coded video or audio frame, with the file's times in ticks of its track.
  struct Unit {
    var track: TrackID
    var timescale: UInt32
    var decodeTime: Int64
    var compositionOffset: Int32
    /// Ticks; 0 if the file does not state it.
    var duration: UInt32
    var isSync: Bool
    var isDisposable: Bool
    var payload: ByteBuffer
  }

  private static let formats = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,flv,aac,ogg"

  private let path: String
  private var context: UnsafeMutablePointer<AVFormatContext>?
  private let packet: UnsafeMutablePointer<AVPacket>
  private(set) var tracks: [FileTrack] = []
  /// Units that were read but not returned yet.
  private var ready: [Unit] = []
  private var seen: Set<TrackID> = []
  /// Failed reads: in a row, and since the last report.
  private var failuresInARow = 0
  private var failures = 0
  /// Why the rest of the file was dropped, in libavformat's words.
  private(set) var rest: String?

  /// After this many failed reads in a row, the rest of the file counts as unreadable.
  private static let mostFailuresInARow = 100

  init(_ path: String) throws {
    // The library's own log lines would bypass weir's log. Errors are thrown with the library's reason.
    av_log_set_level(AV_LOG_QUIET)
    self.path = path
    guard let packet = av_packet_alloc() else { throw LibAVError("read \(path)", code: -ENOMEM) }
    self.packet = packet
    try Self.checkOrdinary(path)
    var options: OpaquePointer?
    av_dict_set(&options, "protocol_whitelist", "file", 0)
    av_dict_set(&options, "format_whitelist", Self.formats, 0)
    defer { av_dict_free(&options) }
    let code = avformat_open_input(&context, "file:" + path, nil, &options)
    guard code >= 0 else {
      throw FileError.unknownFormat(path, reason: LibAVError("open the file", code: code).reason)
    }
    try LibAVError.check(avformat_find_stream_info(context, nil), "read what \(path) consists of")
    try addTrack(AVMEDIA_TYPE_VIDEO, .video)
    try addTrack(AVMEDIA_TYPE_AUDIO, .audio)
    guard !tracks.isEmpty else { throw FileError.empty(path) }
  }

  deinit {
    var packet: UnsafeMutablePointer<AVPacket>? = packet
    av_packet_free(&packet)
    avformat_close_input(&context)
  }

  /// Whether every track has had a unit.
  var hasSeenAllTracks: Bool { seen.count == tracks.count }

  /// Data dropped since the last call because it was unreadable or invalid: one element per frame or failed read. A
  /// failed read counts as the leading track.
  func takeBroken() -> [MediaKind] {
    var kinds = Array(repeating: tracks[0].description.kind, count: failures)
    failures = 0
    for index in tracks.indices {
      kinds += Array(repeating: tracks[index].description.kind, count: tracks[index].takeBroken())
    }
    return kinds
  }

  /// The next readable unit in the file's order. Nil at the file's end, or if nothing more is readable.
  func next() -> Unit? {
    while true {
      if !ready.isEmpty { return ready.removeFirst() }
      let code = av_read_frame(context, packet)
      guard code >= 0 else {
        if code != weir_averror_eof, isWorthAnotherTry(code) { continue }
        for index in tracks.indices { ready += tracks[index].dated(before: nil) }
        if ready.isEmpty { return nil }
        continue
      }
      failuresInARow = 0
      defer { av_packet_unref(packet) }
      guard let index = tracks.firstIndex(where: { $0.streamIndex == packet.pointee.stream_index }) else { continue }
      ready += tracks[index].units(packet)
      if !ready.isEmpty { seen.insert(tracks[index].description.id) }
    }
  }

  /// Skips an unreadable place, because most containers continue after it.
  private func isWorthAnotherTry(_ code: Int32) -> Bool {
    guard rest == nil else { return false }
    failures += 1
    failuresInARow += 1
    if failuresInARow >= Self.mostFailuresInARow { rest = LibAVError("read \(path)", code: code).reason }
    return rest == nil
  }

  private func addTrack(_ type: AVMediaType, _ id: TrackID) throws {
    let index = av_find_best_stream(context, type, -1, -1, nil, 0)
    guard index >= 0, let stream = context?.pointee.streams[Int(index)] else { return }
    // A cover is a still image.
    if stream.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC != 0 { return }
    tracks.append(try FileTrack(stream, id: id, path: path))
  }

  private static func checkOrdinary(_ path: String) throws(FileError) {
    var status = stat()
    guard stat(path, &status) == 0 else { throw .unreadable(path, code: errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .noFile(path) }
    guard access(path, R_OK) == 0 else { throw .unreadable(path, code: errno) }
  }
}
