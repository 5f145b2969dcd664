@testable import Delivery
import HTTP
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@Suite struct OfferBodyTests {
  private final class Source: ArrivingBodySource {
    var (accepted, cuts) = (false, 0)
    var responses: [HTTPResponse] = []

    func accept() { accepted = true }
    func pause() {}
    func resume() {}
    func respond(_ response: HTTPResponse) { responses.append(response) }
    func cut() { cuts += 1 }
  }

  private func body(_ place: ArrivingOffers.Place?) -> OfferBody {
    OfferBody(place) { offer, loop in
      loop.makeSucceededFuture(HTTPResponse(status: .created, headers: [HeaderField("Length", "\(offer.utf8.count)")]))
    } abandoned: { _ in
    }
  }

  @Test func `an offer that does not come in time is cut off, and frees its place`() {
    let (loop, source, offers) = (EmbeddedEventLoop(), Source(), ArrivingOffers())
    var bodies: [OfferBody] = []
    for _ in 0..<ArrivingOffers.perAddress {
      bodies.append(body(offers.place(for: "a")))
      bodies.last?.begin(source, on: loop)
      bodies.last?.receive(ByteBuffer(string: "v=0"))
    }
    #expect(source.accepted && source.responses.isEmpty)
    #expect(offers.place(for: "a") == nil && offers.place(for: "b") != nil)
    loop.advanceTime(by: .seconds(19))
    #expect(source.cuts == 0)
    loop.advanceTime(by: .seconds(2))
    #expect(source.cuts == bodies.count && offers.place(for: "a") != nil)
    for body in bodies { body.abandon("closed") }
    #expect(source.cuts == bodies.count && source.responses.isEmpty)
  }

  @Test func `too many offers of an address are refused before their bodies come`() {
    let (loop, source) = (EmbeddedEventLoop(), Source())
    body(nil).begin(source, on: loop)
    #expect(!source.accepted && source.responses.map(\.status.code) == [429])
  }

  @Test func `a whole offer is answered, and its deadline ends nothing`() {
    let (loop, source, offers) = (EmbeddedEventLoop(), Source(), ArrivingOffers())
    let body = body(offers.place(for: "a"))
    body.begin(source, on: loop)
    body.receive(ByteBuffer(string: "v=0\r\n"))
    body.finish()
    loop.run()
    #expect(source.responses.map(\.status.code) == [201])
    loop.advanceTime(by: .seconds(60))
    #expect(source.cuts == 0)
  }
}
