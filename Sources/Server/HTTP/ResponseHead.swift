internal import NIOHTTP1

/// Status and fields of a response, independent of the HTTP version. The version's encoder adds the fields of every response
/// (Date, nosniff).
struct ResponseHead {
  /// The length of the body.
  enum BodyLength {
    /// No body can follow: 204 and 304.
    case bodiless
    /// In bytes; also for the response to HEAD.
    case known(Int)
    /// The body grows while it is sent.
    case open
  }

  var status: HTTPResponseStatus
  /// The fields of the route and of the plan.
  var fields: [HeaderField]
  /// With its quotes.
  var entityTag: String?
  var length: BodyLength

  /// Fields of every response, errors included.
  static let common = [HeaderField("X-Content-Type-Options", "nosniff")]
}
