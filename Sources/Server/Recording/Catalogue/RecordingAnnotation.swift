internal import Ingest

/// What a client said about a recording after it began: kept in the catalogue alone, so a new catalogue takes it over.
struct RecordingAnnotation: Sendable, Hashable {
  /// Replaces the name that its file has; nil leaves that.
  var title: String?
  var note: String?

  var isEmpty: Bool { title == nil && note == nil }
}
