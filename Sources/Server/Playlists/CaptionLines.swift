internal import FMP4
internal import NIOCore
internal import Streams

/// Closed captions of a video, as HLS and DASH declare them.
struct CaptionLines {
  let captions: [Caption]
  /// It is promised that there are none.
  private let areNone: Bool

  private static let group = "captions"

  init(_ declarations: CaptionDeclarations, of video: TrackDescription?) {
    captions = video.map { declarations.captions(of: $0.id) } ?? []
    areNone = declarations.rule == .none && video != nil
  }

  // MARK: HLS

  /// The least EXT-X-VERSION: 7 for services of CEA-708 (RFC 8216bis §8).
  var version: Int { captions.contains { if case .service = $0.service { true } else { false } } ? 7 : 6 }

  /// The EXT-X-MEDIA tags (RFC 8216bis §4.4.6.1).
  func write(_ out: inout ByteBuffer) {
    for caption in captions {
      let isKnown = caption.language != "und"
      let language = isKnown ? ",LANGUAGE=\"\(LanguageCode.tag(caption.language))\"" : ""
      let name = isKnown ? "\(caption.language) (\(caption.service.name))" : caption.service.name
      out.writeString(
        "#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"\(Self.group)\",NAME=\"\(name)\"\(language),"
          + "DEFAULT=NO,AUTOSELECT=YES,INSTREAM-ID=\"\(caption.service.name)\"\n")
    }
  }

  /// The attribute of each variant with video (§4.4.6.2). Without it nothing is said about captions.
  var attribute: [String] {
    if areNone { return ["CLOSED-CAPTIONS=NONE"] }
    return captions.isEmpty ? [] : ["CLOSED-CAPTIONS=\"\(Self.group)\""]
  }

  // MARK: DASH

  /// The Accessibility descriptors (ANSI/SCTE 214-1 §7.2.3).
  var descriptors: [XMLElement] {
    var channels: [String] = []
    var services: [String] = []
    for caption in captions {
      switch caption.service {
      case .channel: channels.append("\(caption.service.name)=\(caption.language)")
      case .service(let number): services.append("\(number)=lang:\(caption.language)")
      }
    }
    return [("cea-608", channels), ("cea-708", services)].filter { !$1.isEmpty }.map { scheme, values in
      XMLElement(
        "Accessibility",
        ["schemeIdUri": "urn:scte:dash:cc:\(scheme):2015", "value": values.joined(separator: ";")])
    }
  }
}
