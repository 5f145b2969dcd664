/// What this program is called and which release it is.
enum Version {
  static let name = "weir"
  static let number = "0.1.0"
}
