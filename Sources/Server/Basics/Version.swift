/// What this program is called and which release it is.
package enum Version {
  package static let name = "weir"
  package static let number = "0.1.0"
}
