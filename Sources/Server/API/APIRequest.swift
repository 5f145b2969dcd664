internal import HTTP
internal import NIOCore

/// A request of the API, with what its address says.
struct APIRequest {
  let http: HTTPRequest
  /// What stands in the pattern's places, in order: names, and words out of several.
  let values: [String]
  let eventLoop: any EventLoop

  /// Empty where the pattern has no such place.
  subscript(_ place: Int) -> String { values.indices.contains(place) ? values[place] : "" }
}
