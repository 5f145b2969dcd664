internal import Base
internal import NIOCore

/// What `weir recordings start` orders, as the body of the request. The server judges the values.
struct RecordingOrderText {
  var name: String?
  /// A word, or numbers separated by commas.
  var tracks: String?
  var duration: String?
  var size: String?

  /// Nil where nothing is ordered.
  var json: ByteBuffer? {
    var members: [String] = []
    if let name { members.append(#""name":\#(LogText.json(name))"#) }
    if let tracks { members.append(#""tracks":\#(Self.choice(tracks))"#) }
    let limits = [("duration", duration), ("bytes", size)].compactMap { name, text in
      text.map { #""\#(name)":\#(LogText.json($0))"# }
    }
    if !limits.isEmpty { members.append(#""limits":{\#(limits.joined(separator: ","))}"#) }
    return members.isEmpty ? nil : ByteBuffer(string: "{\(members.joined(separator: ","))}")
  }

  private static func choice(_ text: String) -> String {
    let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map { UInt32($0) }
    guard numbers.allSatisfy({ $0 != nil }) else { return LogText.json(text) }
    return "[\(numbers.compactMap { $0.map(String.init) }.joined(separator: ","))]"
  }
}
