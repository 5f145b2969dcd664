internal import Base
internal import HTTP
internal import NIOCore
internal import Synchronization

/// How many offers may arrive at a time: nobody was asked for a key yet.
final class ArrivingOffers: Sendable {
  static let (perAddress, inAll) = (16, 256)

  private let count = Mutex(AddressCount(perAddress: perAddress, inAll: inAll))

  /// A place among them. The last reference frees it.
  final class Place: Sendable {
    private let offers: ArrivingOffers
    private let address: String

    fileprivate init(_ offers: ArrivingOffers, _ address: String) { (self.offers, self.address) = (offers, address) }

    deinit { offers.count.withLock { $0.leave(address) } }
  }

  /// Nil if there are too many, of this address or of all.
  func place(for address: String) -> Place? {
    count.withLock { $0.admit(address) } ? Place(self, address) : nil
  }
}

/// The body of a request that offers: it is collected, and then answered.
final class OfferBody: ArrivingBody {
  /// What answers an offer. `abandon` is called if nobody gets the answer.
  typealias Answering = @Sendable (_ offer: String, _ loop: any EventLoop) -> EventLoopFuture<HTTPResponse>

  private let answering: Answering
  private let abandoned: @Sendable (HTTPResponse) -> Void
  /// From the end of the head to the end of the body.
  private static let patience = TimeAmount.seconds(20)

  private var place: ArrivingOffers.Place?
  private var deadline: Scheduled<Void>?
  private var source: (any ArrivingBodySource)?
  private var loop: (any EventLoop)?
  private var bytes = ByteBuffer()

  /// - Parameter place: nil if too many offers arrive.
  init(
    _ place: ArrivingOffers.Place?, _ answering: @escaping Answering,
    abandoned: @escaping @Sendable (HTTPResponse) -> Void
  ) {
    (self.place, self.answering, self.abandoned) = (place, answering, abandoned)
  }

  func begin(_ source: any ArrivingBodySource, on eventLoop: any EventLoop) {
    (self.source, loop) = (source, eventLoop)
    guard place != nil else { return respond(Self.tooMany.response) }
    deadline = eventLoop.assumeIsolated().scheduleTask(in: Self.patience) { self.expire() }
    source.accept()
  }

  func receive(_ bytes: ByteBuffer) {
    guard source != nil else { return }
    guard self.bytes.readableBytes + bytes.readableBytes <= WebRTCSessions.offerBytes else {
      return respond(Problem.bodyTooLarge(WebRTCSessions.offerBytes).response)
    }
    self.bytes.writeImmutableBuffer(bytes)
  }

  func finish() {
    guard source != nil, let loop else { return }
    let text = String(buffer: bytes)
    release()
    let bound = NIOLoopBound(self, eventLoop: loop)
    answering(text, loop).whenComplete { result in
      switch result {
      case .success(let response): bound.value.conclude(response)
      case .failure: bound.value.expire()
      }
    }
  }

  func abandon(_ reason: String) {
    source = nil
    release()
  }

  /// The body has not come in time.
  private func expire() {
    let source = source.take()
    release()
    source?.cut()
  }

  private func release() {
    deadline?.cancel()
    (bytes, place, deadline) = (ByteBuffer(), nil, nil)
  }

  private static let tooMany = Problem(
    .tooManyUploads, "Too many offers of this address, or of all, arrive at once.", help: "Try again in 5 s.",
    retryAfter: 5)

  private func conclude(_ response: HTTPResponse) {
    // Nobody gets the answer, so nobody will come.
    guard source != nil else { return abandoned(response) }
    respond(response)
  }

  private func respond(_ response: HTTPResponse) {
    let source = source.take()
    release()
    source?.respond(response)
  }
}
