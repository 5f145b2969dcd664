internal import Base
internal import FMP4
internal import Streams

/// How declared captions are written: `auto`, `none`, or `CC1=en,CC3=es,SERVICE1`.
enum CaptionText {
  private static let advice = "write auto, none, or services with languages: CC1=en,CC3=es,SERVICE1=en"

  static func rule(_ text: String) throws(ValueError) -> CaptionDeclarations.Rule {
    switch text {
    case "auto": return .found
    case "none": return .none
    default: break
    }
    var captions: [Caption] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let service = sides.first.flatMap({ CaptionService($0) }) else {
        throw ValueError("\(LogText.escaped(String(part))) is no service of captions", advice: advice)
      }
      guard !captions.contains(where: { $0.service == service }) else {
        throw ValueError("\(service.name) is there twice", advice: advice)
      }
      var caption = Caption(service: service)
      if sides.count > 1 {
        guard let code = LanguageCode.three(String(sides[1])) else {
          throw ValueError("\(LogText.escaped(String(sides[1]))) is no language", advice: "write a code as de or deu")
        }
        caption.language = code
      }
      captions.append(caption)
    }
    return .stated(captions)
  }
}
