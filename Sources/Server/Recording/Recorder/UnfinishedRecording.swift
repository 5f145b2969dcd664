internal import NIOCore
internal import Publishing
internal import RecordingFiles

/// A recording whose fragments are whole and whose movie is not made yet.
struct UnfinishedRecording: Sendable {
  var folder: RecordingFolder
  var name: RecordingName
  var stream: StreamName
  /// The recorder's facts; nil for a file of an earlier run, or where only the file can tell what is left.
  var facts: RecordingFacts?
  /// Why it ended early, for a file into which that could not be written.
  var failure: String?
  /// Byte positions of its segments, as the finished file stores them (`RecordingIndex.stored`).
  var index: ByteBuffer?
  /// A moov was written at the start of the file, but it or the rename is not known to be durable. The file may have its final
  /// name already.
  var hasHead = false
  /// Called when the movie is durable.
  var whenStored: @Sendable () -> Void = {}
}
