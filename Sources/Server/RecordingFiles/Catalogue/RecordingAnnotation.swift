/// What a client said about a recording after it began: kept in the catalogue alone, so a new catalogue takes it over.
package struct RecordingAnnotation: Sendable, Hashable {
  /// Replaces the name that its file has; nil leaves that.
  package var title: String?
  package var note: String?

  package init(title: String? = nil, note: String? = nil) {
    (self.title, self.note) = (title, note)
  }

  var isEmpty: Bool { title == nil && note == nil }
}
