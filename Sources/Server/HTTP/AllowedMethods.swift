/// What may be asked of an address: the value of Allow (RFC 9110 §10.2.1). HEAD goes with GET, and OPTIONS with everything.
struct AllowedMethods: OptionSet, Sendable, CustomStringConvertible {
  let rawValue: Int

  static let get = AllowedMethods(rawValue: 1)
  static let post = AllowedMethods(rawValue: 2)
  static let delete = AllowedMethods(rawValue: 4)

  func allow(_ method: HTTPRequest.Method) -> Bool {
    switch method {
    case .get, .head: contains(.get)
    case .post: contains(.post)
    case .delete: contains(.delete)
    case .options: true
    case .put, .patch, .other: false
    }
  }

  var description: String {
    let names = [(Self.get, "GET, HEAD"), (.post, "POST"), (.delete, "DELETE")].filter { contains($0.0) }.map(\.1)
    return (names + ["OPTIONS"]).joined(separator: ", ")
  }
}
