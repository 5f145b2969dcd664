/// One field of a response's head. Names and values are made or checked by weir; they are never raw bytes of a peer.
package struct HeaderField: Sendable, Equatable {
  package var name: String
  package var value: String

  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}
