internal import Base
internal import FoundationEssentials
package import NIOCore
package import RecordingFiles

/// The body of a request that sets the annotations on a recording: `{"name": "Interview", "note": "second take"}`. A member that is
/// missing, null or empty removes what was said.
package struct AnnotationBody: Decodable {
  /// It is no JSON object with these members.
  struct Malformed: Error {}

  private let name: String?
  private let note: String?

  private enum CodingKeys: String, CodingKey, CaseIterable { case name, note }

  package init(from decoder: any Decoder) throws {
    let known = CodingKeys.allCases.map(\.rawValue)
    let keys = try decoder.container(keyedBy: AnyKey.self).allKeys
    if let other = keys.first(where: { !known.contains($0.stringValue) }) {
      throw ValueError(
        "there is no member \"\(LogText.escaped(other.stringValue))\"", advice: "use \(known.joined(separator: ", "))")
    }
    let values = try decoder.container(keyedBy: CodingKeys.self)
    name = try values.decodeIfPresent(String.self, forKey: .name)
    note = try values.decodeIfPresent(String.self, forKey: .note)
  }

  /// Throws `Malformed` or a `ValueError`.
  package static func annotation(in body: ByteBuffer) throws -> RecordingAnnotation {
    let read: AnnotationBody
    do {
      read = try JSONDecoder().decode(AnnotationBody.self, from: Data(body.readableBytesView))
    } catch is DecodingError {
      throw Malformed()
    }
    return RecordingAnnotation(
      title: try told("name", read.name) { text throws(ValueError) in try RecordingTitle(text).description },
      note: try told("note", read.note) { text throws(ValueError) in try RecordingNote(text).description })
  }

  /// Puts the member's name before the reason.
  private static func told(
    _ member: String, _ text: String?, _ read: (String) throws(ValueError) -> String
  ) throws(ValueError) -> String? {
    guard let text, !text.isEmpty else { return nil }
    do throws(ValueError) {
      return try read(text)
    } catch {
      throw ValueError("\(member): \(error.reason)", advice: error.advice)
    }
  }
}

/// The same for the API's description.
package struct AnnotationRequest: APIObject {
  let name: String?
  let note: String?

  package static let notes: [String: FieldNote] = [
    "name": "Name of the recording and of its download; null or nothing leaves the one that its file has.",
    "note": "What there is to say about it, with line ends; null or nothing removes it.",
  ]
}
