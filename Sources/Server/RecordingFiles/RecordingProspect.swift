/// What is about to happen to a recording's file, or cannot be seen before the call returns. Told by the thread that does it, which
/// may wait.
package enum RecordingProspect: Sendable, Hashable {
  /// The file gets its final name.
  case stored
  /// The same, of a file that an earlier run left.
  case salvaged
  /// A client deletes it; it can be restored for a while.
  case deleted(by: String?)
  /// Its file is removed, by retention or because the time to undo a deletion is over.
  case removed(reason: String)
  /// A client has restored it.
  case restored
}
