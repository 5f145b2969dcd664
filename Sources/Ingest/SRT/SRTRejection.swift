/// Why a caller is rejected, with the code that it receives (SRT Access Control Guidelines).
struct SRTRejection: Error, Sendable, Hashable {
  enum Code: Int32, Sendable, Hashable {
    case badRequest = 1400
    case unauthorized = 1401
    case overload = 1402
    case forbidden = 1403
    case badMode = 1405
    case conflict = 1409
    case media = 1415
    case down = 1503

    /// It counts as a failure of its address.
    var isFailure: Bool {
      switch self {
      case .badRequest, .unauthorized, .forbidden: true
      case .overload, .badMode, .conflict, .media, .down: false
      }
    }
  }

  var code: Code
  /// One line. It contains no key and no passphrase.
  var reason: String

  init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }
}
