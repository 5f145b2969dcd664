internal import Synchronization

/// The unfinished files that this process writes, by folder and name. A new file has a name before it has its lock. Without this
/// register, a search for the files of an earlier run could take it for one of them.
package enum UnfinishedRecordingFiles {
  private static let names = Mutex<[String: Int]>([:])

  /// Holds a name until it is released.
  final class Holder: Sendable {
    private let name: String

    fileprivate init(_ name: String) {
      self.name = name
      names.withLock { $0[name, default: 0] += 1 }
    }

    deinit {
      names.withLock { names in
        let left = (names[name] ?? 1) - 1
        names[name] = left > 0 ? left : nil
      }
    }
  }

  /// To be called before the file is made.
  static func take(_ name: String, in folder: RecordingFolder) -> Holder { Holder("\(folder.path)/\(name)") }

  package static func isHeld(_ name: String, in folder: RecordingFolder) -> Bool {
    names.withLock { $0["\(folder.path)/\(name)"] != nil }
  }
}
