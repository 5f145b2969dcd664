import Base
import FMP4
@testable import Settings
@testable import Streams
import Testing

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

  @Test func `What recordings keep of declarations is read again`() {
    var (services, others) = (CaptionServices(), CaptionServices())
    for service in [CaptionService.channel(1), .channel(4), .service(1), .service(63)] { services.insert(service) }
    others.insert(.channel(2))
    var found = CaptionDeclarations(.found)
    #expect(found.text(maximumBytes: 512) == nil)
    _ = found.note(services, of: .video)
    _ = found.note(others, of: TrackID(.video, 2))
    let stated = CaptionDeclarations(
      .stated([Caption(service: .channel(1), language: "eng"), Caption(service: .service(2))]))
    let texts = [
      (found, "1:CC1,CC4,SERVICE1,SERVICE63 3:CC2"), (stated, "CC1=eng,SERVICE2"), (CaptionDeclarations(.none), "none"),
    ]
    for (declarations, text) in texts {
      #expect(declarations.text(maximumBytes: 512) == text)
      #expect(CaptionDeclarations(text: text) == declarations)
    }
    // Whole services alone, and none of another track.
    #expect(found.text(maximumBytes: 27) == "1:CC1,CC4,SERVICE1")
    #expect(found.text(maximumBytes: 2) == nil)
  }

  @Test func `Of a text that is damaged only what can be read is declared`() {
    let found = CaptionDeclarations(text: "x:CC1 1:CC9,CC2,, 3: 5")
    #expect(found.rule == .found && found.captions(of: .video) == [Caption(service: .channel(2))])
    #expect(found.captions(of: TrackID(.video, 2)).isEmpty)
    #expect(
      CaptionDeclarations(text: "CC7=eng,CC1=nothing,=,SERVICE3=de").rule
        == .stated([Caption(service: .channel(1)), Caption(service: .service(3), language: "deu")]))
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
