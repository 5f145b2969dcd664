/// What may be asked of an address: the value of Allow (RFC 9110 §10.2.1). HEAD goes with GET, and OPTIONS with everything.
package struct AllowedMethods: OptionSet, Sendable, CustomStringConvertible {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  package static let get = AllowedMethods(rawValue: 1)
  package static let post = AllowedMethods(rawValue: 2)
  package static let delete = AllowedMethods(rawValue: 4)

  package func allow(_ method: HTTPRequest.Method) -> Bool {
    switch method {
    case .get, .head: contains(.get)
    case .post: contains(.post)
    case .delete: contains(.delete)
    case .options: true
    case .put, .patch, .other: false
    }
  }

  package var description: String {
    let names = [(Self.get, "GET, HEAD"), (.post, "POST"), (.delete, "DELETE")].filter { contains($0.0) }.map(\.1)
    return (names + ["OPTIONS"]).joined(separator: ", ")
  }
}
