package import FMP4

/// A service of closed captions as playlists declare it.
package struct Caption: Sendable, Hashable {
  package var service: CaptionService
  /// ISO 639-2; "und" if unknown.
  package var language = "und"

  package init(service: CaptionService, language: String = "und") {
    (self.service, self.language) = (service, language)
  }
}

/// Which closed captions playlists declare: those that are found in the media, or those that a setting states.
package struct CaptionDeclarations: Sendable, Hashable {
  package enum Rule: Sendable, Hashable {
    case found
    /// Playlists promise that there are none.
    case none
    case stated([Caption])
  }

  package let rule: Rule
  private(set) var found: [TrackID: CaptionServices] = [:]

  package init(_ rule: Rule = .found) { self.rule = rule }

  /// Takes all services that were found in a track. False if that declares nothing new.
  mutating func note(_ services: CaptionServices, of track: TrackID) -> Bool {
    guard rule == .found else { return false }
    var all = found[track] ?? CaptionServices()
    all.formUnion(services)
    guard all != found[track] else { return false }
    found[track] = all
    return true
  }

  /// What is declared of a video track and of its rungs.
  package func captions(of track: TrackID) -> [Caption] {
    switch rule {
    case .found: (found[track]?.all ?? []).map { Caption(service: $0) }
    case .none: []
    case .stated(let captions): captions
    }
  }
}
