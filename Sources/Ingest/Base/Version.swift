/// The name and the release of this program.
package enum Version {
  package static let name = "weir"
  package static let number = "0.1.0"
}
