/// The methods that an address allows: the value of Allow (RFC 9110 §10.2.1). GET implies HEAD; OPTIONS is always allowed.
package struct AllowedMethods: OptionSet, Sendable, CustomStringConvertible {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  package static let get = AllowedMethods(rawValue: 1)
  package static let post = AllowedMethods(rawValue: 2)
  package static let delete = AllowedMethods(rawValue: 4)
  package static let put = AllowedMethods(rawValue: 8)

  package func allow(_ method: HTTPRequest.Method) -> Bool {
    switch method {
    case .get, .head: contains(.get)
    case .post: contains(.post)
    case .delete: contains(.delete)
    case .put: contains(.put)
    case .options: true
    case .patch, .other: false
    }
  }

  package var description: String {
    let names = [(Self.get, "GET, HEAD"), (.post, "POST"), (.put, "PUT"), (.delete, "DELETE")].filter { contains($0.0) }
      .map(\.1)
    return (names + ["OPTIONS"]).joined(separator: ", ")
  }
}
