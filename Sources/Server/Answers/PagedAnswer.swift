/// A page of a list.
package protocol PagedAnswer: APIObject {
  /// `after` of the next page; nil on the last one.
  var next: String? { get }

  /// Adds the page that follows.
  mutating func append(_ page: Self)
}
