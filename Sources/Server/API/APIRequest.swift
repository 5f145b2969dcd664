internal import Base
internal import Delivery
internal import HTTP
internal import NIOCore

/// A request of the API, with the values from its address.
struct APIRequest {
  let http: HTTPRequest
  let viewer: Viewer
  /// The values for the places of the pattern, in order: names, and chosen words.
  let values: [String]
  let eventLoop: any EventLoop

  /// Who asks, for events: the client's address, or the control socket.
  var who: String? { http.source.isControl ? "control socket" : http.client?.host.hostText }

  /// Empty if the pattern has no such place.
  subscript(_ place: Int) -> String { values.indices.contains(place) ? values[place] : "" }
}
