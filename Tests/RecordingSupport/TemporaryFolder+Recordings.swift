internal import Publishing
@testable internal import RecordingFiles
package import Support

extension TemporaryFolder {
  /// Paths of the files below, relative, sorted.
  package var files: [String] {
    guard let root = try? RecordingFolder.open(path), let names = try? root.names() else { return [] }
    return names.flatMap { name -> [String] in
      guard let stream = StreamName(name), let folder = try? root.folder(of: stream, ifAbsent: .fail) else {
        return [name]
      }
      return ((try? folder.names()) ?? []).map { "\(name)/\($0)" }
    }
  }
}
