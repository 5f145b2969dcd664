internal import FMP4
internal import LibAV

/// What is shown while a publisher is away, from a file of this machine.
package enum FallbackMedia: Sendable {
  /// Video, mostly with audio, which a `FileSource` plays in a loop.
  case film(path: String)
  /// A picture, which a `StillSource` repeats.
  case picture(StillPicture)

  /// Opens the file and looks whether it can be shown; it is closed again. What it is follows from its first bytes. A
  /// picture is encoded, which takes up to a second. A film is read up to its first key frame.
  ///
  /// Throws why the file cannot be shown: it cannot be read, is no picture and no film, is damaged, or has no video
  /// that is passed through.
  package init(path: String) throws {
    let file = try OrdinaryFile(path)
    guard file.size > 0 else { throw FallbackError.empty(path) }
    if PictureFormat(try file.beginning(PictureFormat.beginning)) != nil {
      self = .picture(try StillPicture(path: path))
      return
    }
    try CaptureLibrary.require()
    try Self.checkFilm(path)
    self = .film(path: path)
  }

  private static func checkFilm(_ path: String) throws {
    let film: MediaFile
    do {
      film = try MediaFile(path)
    } catch FileError.unknownFormat(path, let reason) {
      throw FallbackError.unknownFormat(path, reason: reason)
    }
    guard film.tracks.first?.description.kind == .video else { throw FallbackError.noVideo(path) }
    for _ in 0..<FallbackLimits.unitsBeforeKeyFrame {
      guard let unit = film.next() else { break }
      if unit.track == .video, unit.isSync { return }
    }
    throw FallbackError.noKeyFrame(path)
  }
}
