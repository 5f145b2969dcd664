import Support
import Testing

/// The scanner held against NIO's decoder: the same requests, or refused for a reason that is written down.
@Suite struct HTTP1ScannerDifferentialTests {
  /// WEIR_DIFFERENTIAL=4000 for many more, in half a minute on two cores.
  private static let rounds = environmentNumber("WEIR_DIFFERENTIAL") ?? (isLong ? 400 : 200)

  @Test(arguments: 0..<(isLong ? 8 : 4)) func readsWhatNIOReadsOrRefusesItForAReason(seed: Int) {
    var maker = RequestMaker(seed: UInt64(seed))
    var taken = 0
    for round in 0..<Self.rounds {
      let bytes = maker.bytes(mutations: round % 4)
      var cuts = maker
      let objection = HTTP1Reading.objection(to: bytes) { _ in Int(cuts.generator.next() % 24) }
      if let objection {
        Issue.record("\(String(decoding: bytes, as: UTF8.self).debugDescription): \(objection)")
        return
      }
      if HTTP1Reading(scanning: [bytes]).fault == nil { taken += 1 }
    }
    #expect((Self.rounds / 5...Self.rounds * 4 / 5).contains(taken), "as often good as bad: \(taken) of \(Self.rounds)")
  }
}

/// Makes up connections: requests that are in order, requests that are nearly so, and what becomes of them when bytes
/// change on the way. The same for the same seed.
struct RequestMaker {
  var generator: Generator

  /// SplitMix64.
  struct Generator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var z = state
      z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
      return z ^ z >> 31
    }
  }

  init(seed: UInt64) { generator = Generator(state: seed &* 0x1234_5678_9ABC_DEF1) }

  mutating func bytes(mutations: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0...pick(3) { bytes += request() }
    for _ in 0..<mutations { mutate(&bytes) }
    return bytes
  }

  private mutating func pick(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }

  private mutating func one(_ choices: [String]) -> String { choices[pick(choices.count)] }

  /// Mostly the first.
  private mutating func mostly(_ first: String, _ others: [String]) -> String { pick(40) > 0 ? first : one(others) }

  private mutating func request() -> [UInt8] {
    let method = one(["GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    let verb = mostly(method, ["get", "BREW", "CONNECT", "PROPFIND", "G ET", "", "M-SEARCH", "TRACE"])
    let target = mostly(
      one([
        "/", "/live/cam/index.m3u8?_HLS_msn=7&_HLS_part=2", "/a/%63?b", "http://h/x?y", "/a#b", "/!~$&'()*,;=:@[]{}|",
      ]),
      [
        "*", "a", "", "//x", "http:/x", "/é", "/a\tb", "/a b", "http://u@h/", "https://",
        "/" + String(repeating: "a", count: 4200),
      ])
    let version = mostly(
      one(["HTTP/1.1", "HTTP/1.1", "HTTP/1.0"]), ["HTTP/2.0", "http/1.1", "HTTP/1", "HTTP/1.2", "HTTP/0.9", "HTTP/11"])
    var text = mostly("", ["\r\n", "\n", "\r\n\r\n", "\r"])
    text += verb + mostly(" ", ["  ", "\t", ""]) + target + mostly(" ", ["  ", ""]) + version + end()
    for _ in 0..<pick(5) { text += field() + end() }
    var body = ""
    switch pick(8) {
    case 0, 1:
      body = String(repeating: "x", count: pick(30))
      text +=
        "Content-Length: \(mostly(String(body.utf8.count), ["+5", "-1", "5,5", "0x5", "", "007", "99999999999999999999"]))"
        + end()
      if pick(12) == 0 { text += "content-length: \(body.utf8.count)" + end() }
      if pick(12) == 0 { text += "Transfer-Encoding: chunked" + end() }
    case 2, 3:
      text +=
        "Transfer-Encoding: \(mostly("chunked", ["gzip, chunked", "chunked, gzip", "Chunked", "identity", "xchunked"]))"
        + end()
      for _ in 0..<pick(4) {
        let chunk = String(repeating: "y", count: 1 + pick(40))
        body += mostly(String(chunk.utf8.count, radix: 16), ["", "g", "0x4", "fffffffff", " 5", "00000000000000005"])
        body += mostly("", [";a=b", ";a=\"b c\"", " ;x", ";", ";\u{1}"]) + end() + chunk + end()
      }
      body += "0" + end() + mostly("", ["Trailer: x\r\n", "a b: c\r\n", ": x\r\n", " x\r\n"]) + end()
    default: break
    }
    return Array((text + end() + body).utf8)
  }

  private mutating func end() -> String { pick(300) > 0 ? "\r\n" : one(["\n", "\r", "\r\r\n", "", "\n\r"]) }

  private mutating func field() -> String {
    let name = mostly(
      one(["Host", "Host", "Connection", "Range", "If-None-Match", "User-Agent", "Accept-Encoding", "Expect", "X-y_z"]),
      ["Ho st", "Host ", "", " Host", "\tX", "X:Y", "Hö", "Upgrade", "X\0", "(x)"])
    let value = mostly(
      one([
        "x", "", "close", "keep-alive", "Keep-Alive, close", "bytes=0-99", "\"a\", W/\"b\"", "gzip;q=0, *",
        "100-continue",
      ]),
      ["a\tb", "  x  ", "\t", "é", "a\u{1}b", "a\r\n b", "x\u{7F}", String(repeating: "z", count: 9000)])
    return name + mostly(":", ["", " :", "::"]) + mostly(" ", ["", "\t ", "  "]) + value
  }

  private mutating func mutate(_ bytes: inout [UInt8]) {
    guard !bytes.isEmpty else { return }
    let place = pick(bytes.count)
    let special: [UInt8] = [0, 9, 10, 13, 32, 0x22, 0x2C, 0x3A, 0x30, 0x39, 0x7F, 0x80, 0xFF]
    switch pick(5) {
    case 0: bytes[place] = UInt8(truncatingIfNeeded: generator.next())
    case 1: bytes[place] = special[pick(special.count)]
    case 2: bytes.insert(special[pick(special.count)], at: place)
    case 3: bytes.remove(at: place)
    default: bytes.removeSubrange(place..<min(bytes.count, place + pick(8)))
    }
  }
}
