internal import FMP4

/// As recordings keep them: `none`, `CC1=eng,SERVICE1` as a setting stated them, or those that were found, by the numbers of their
/// tracks: `1:CC1,SERVICE1 3:CC2`.
extension CaptionDeclarations {
  /// Nil if nothing is declared. What does not fit into that many bytes is left out at the end.
  package func text(maximumBytes: Int) -> String? {
    var items: [String] = []
    switch rule {
    case .none: items = ["none"]
    case .stated(let captions):
      for caption in captions {
        let language = caption.language == "und" ? "" : "=\(caption.language)"
        items.append((items.isEmpty ? "" : ",") + caption.service.name + language)
      }
    case .found:
      for (track, services) in found.sorted(by: { $0.key < $1.key }) {
        for (index, service) in services.all.enumerated() {
          let begin = index > 0 ? "," : "\(items.isEmpty ? "" : " ")\(track.rawValue):"
          items.append(begin + service.name)
        }
      }
    }
    var text = ""
    for item in items {
      guard text.utf8.count + item.utf8.count <= maximumBytes else { break }
      text += item
    }
    return text.isEmpty ? nil : text
  }

  /// Reads such a text; what it does not know is left out.
  package init(text: String) {
    if text == "none" {
      self.init(.none)
    } else if text.contains(":") {
      self.init(.found)
      for track in text.split(separator: " ") {
        let sides = track.split(separator: ":", maxSplits: 1)
        guard sides.count == 2, let number = UInt32(sides[0]) else { continue }
        var services = CaptionServices()
        for name in sides[1].split(separator: ",") {
          if let service = CaptionService(name) { services.insert(service) }
        }
        if !services.isEmpty { _ = note(services, of: TrackID(number)) }
      }
    } else {
      var captions: [Caption] = []
      for item in text.split(separator: ",") {
        let sides = item.split(separator: "=", maxSplits: 1)
        guard let service = sides.first.flatMap({ CaptionService($0) }) else { continue }
        let language = sides.count > 1 ? LanguageCode.three(String(sides[1])) : nil
        captions.append(Caption(service: service, language: language ?? "und"))
      }
      self.init(.stated(captions))
    }
  }
}
