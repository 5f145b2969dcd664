import Basics
import FMP4
import Testing

@testable import Server

@Suite struct CaptionTextTests {
  @Test func `Captions are stated by service and language`() throws {
    #expect(try CaptionText.rule("auto") == .found && CaptionText.rule("none") == .none)
    #expect(
      try CaptionText.rule("CC1=en,SERVICE2=deu,CC3")
        == .stated([
          Caption(service: .channel(1), language: "eng"), Caption(service: .service(2), language: "deu"),
          Caption(service: .channel(3)),
        ]))
    for text in ["", "CC5", "CC1=", "CC1=nothing-known", "CC1,CC1", "CC1,,CC2", "all"] {
      #expect(throws: ValueError.self, "\(text)") { _ = try CaptionText.rule(text) }
    }
  }

  @Test func `What is stated is declared, whatever is found`() {
    var services = CaptionServices()
    services.insert(.channel(2))
    var found = CaptionDeclarations(.found)
    let (first, again) = (found.note(services, of: .video), found.note(services, of: .video))
    #expect(first && !again && found.captions(of: .video) == [Caption(service: .channel(2))])
    #expect(found.captions(of: TrackID(.video, 2)).isEmpty)
    for rule in [CaptionDeclarations.Rule.none, .stated([Caption(service: .service(1))])] {
      var stated = CaptionDeclarations(rule)
      let isNew = stated.note(services, of: .video)
      #expect(!isNew && stated.captions(of: .video).map(\.service) == (rule == .none ? [] : [.service(1)]))
    }
  }
}
