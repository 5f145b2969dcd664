internal import FMP4
internal import Streams

/// A service of closed captions.
struct CaptionAnswer: APIObject {
  let service: String
  let language: String

  static let notes: [String: FieldNote] = [
    "service": "CC1 to CC4 of CEA-608, SERVICE1 to SERVICE63 of CEA-708.", "language": "ISO 639-2; und if unknown.",
  ]

  init(_ caption: Caption) { (service, language) = (caption.service.name, caption.language) }
}
