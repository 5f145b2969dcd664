internal import Glibc
package import Logging
internal import Publishing
internal import Streams

/// Removes what an earlier run left below `--segments`: no other process does, and its playlists name a stream that is not
/// live. Only folders with weir's marker that no running process locks are cleaned, and only files with weir's names are
/// removed. Other files stay, with their folder. Blocks on the disk.
package struct SegmentSweep {
  private let folder: String
  private let logger: Logger
  private var removed = 0

  init(folder: String, logger: Logger) {
    self.folder = folder
    self.logger = logger
  }

  /// Never throws: what cannot be removed stays and is logged.
  package static func run(folder: String, logger: Logger) {
    var sweep = SegmentSweep(folder: folder, logger: logger)
    sweep.run()
  }

  private mutating func run() {
    for name in Self.names(in: folder) where StreamName(name) != nil {
      let stream = "\(folder)/\(name)"
      guard Self.isFolder(stream) else { continue }
      sweep(stream)
    }
    if removed > 0 { logger.notice("removed \(removed) epochs of an earlier run from \(folder)") }
  }

  private mutating func sweep(_ stream: String) {
    var left: [String] = []
    for name in Self.names(in: stream) where EpochFolder.isName(name) {
      let epoch = "\(stream)/\(name)"
      guard Self.isFolder(epoch) else { continue }
      if EpochFolder.isLeft(epoch), remove(epoch) {
        removed += 1
      } else {
        left.append(name)
      }
    }
    // Playlists stay with an epoch that stays: they may belong to it.
    guard removed > 0, left.isEmpty else { return }
    for name in ["index.m3u8", "manifest.mpd"] {
      unlink("\(stream)/\(name)")
      unlink("\(stream)/\(name)\(FolderFile.unfinished)")
    }
    rmdir(stream)
  }

  /// False when a file is not weir's, or cannot be removed.
  private func remove(_ epoch: String) -> Bool {
    for rendition in Self.names(in: epoch) where Rendition(rawValue: rendition) != nil {
      let path = "\(epoch)/\(rendition)"
      guard Self.isFolder(path) else { continue }
      for name in Self.names(in: path) where Self.isMedia(name) { unlink("\(path)/\(name)") }
      rmdir(path)
    }
    // The marker is removed last, so that the next start continues an interrupted sweep.
    let others = Self.names(in: epoch).filter { $0 != EpochFolder.marker }
    guard others.isEmpty else {
      let names = others.sorted().joined(separator: ", ")
      logger.warning("\(epoch) is not removed, because weir did not write some of its files (\(names))")
      return false
    }
    unlink("\(epoch)/\(EpochFolder.marker)")
    guard rmdir(epoch) == 0 else {
      logger.warning("cannot remove \(epoch): \(String(cString: strerror(errno)))")
      return false
    }
    return true
  }

  private static func isMedia(_ name: String) -> Bool {
    let whole = name.hasSuffix(FolderFile.unfinished) ? String(name.dropLast(FolderFile.unfinished.utf8.count)) : name
    switch MediaName.parse(whole) {
    // No file of a segment folder has such a name.
    case nil, .playable?, .firstPart?: return false
    case .playlist?, .keyFrames?, .programme?, .initSegment?, .segment?, .segmentAt?, .part?: return true
    }
  }

  /// A real folder, not a symbolic link.
  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Without `.` and `..`; empty when the folder cannot be read.
  private static func names(in path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}
