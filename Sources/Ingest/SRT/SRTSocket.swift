internal import CSRT
internal import Glibc
internal import Publishing

/// A socket of libsrt. Blocks nowhere.
struct SRTSocket {
  let id: Int32

  /// An error of libsrt.
  struct Failure: Error, CustomStringConvertible {
    let description: String

    /// The last one of this thread.
    init(_ attempt: String) { description = "cannot \(attempt): \(String(cString: srt_getlasterror_str()))" }
  }

  enum Received {
    /// Bytes, and the number of their packet.
    case packet(bytes: Int, number: Int32)
    case nothing
    case ended
  }

  init(id: Int32) { self.id = id }

  /// A socket in live mode. Too late packets are dropped, and a peer has to encrypt just as it does itself.
  init() throws(Failure) {
    id = srt_create_socket()
    guard id >= 0 else { throw Failure("make a socket") }
    try set(SRTO_TRANSTYPE, SRTT_LIVE.rawValue)
    try set(SRTO_RCVSYN, false)
    try set(SRTO_SNDSYN, false)
    try set(SRTO_IPV6ONLY, Int32(0))
    try set(SRTO_TSBPDMODE, true)
    try set(SRTO_TLPKTDROP, true)
    try set(SRTO_ENFORCEDENCRYPTION, true)
    try set(SRTO_PAYLOADSIZE, Int32(SRTLimits.payloadBytes))
    try set(SRTO_UDP_RCVBUF, SRTLimits.socketBuffer)
    // Versions before 1.3 have no stream ID.
    try set(SRTO_MINVERSION, Int32(0x010300))
  }

  func set<Value>(_ option: SRT_SOCKOPT, _ value: Value) throws(Failure) {
    let code = withUnsafeBytes(of: value) { srt_setsockflag(id, option, $0.baseAddress, Int32($0.count)) }
    guard code == 0 else { throw Failure("set option \(option.rawValue)") }
  }

  func set(_ option: SRT_SOCKOPT, _ text: String) throws(Failure) {
    var text = text
    let code = text.withUTF8 { srt_setsockflag(id, option, $0.baseAddress, Int32($0.count)) }
    guard code == 0 else { throw Failure("set option \(option.rawValue)") }
  }

  func number(_ option: SRT_SOCKOPT) -> Int32 {
    var value: Int32 = 0
    var size = Int32(MemoryLayout<Int32>.size)
    return srt_getsockflag(id, option, &value, &size) == 0 ? value : 0
  }

  /// Takes over a bound UDP socket of the system.
  func take(_ descriptor: Int32) throws(Failure) {
    guard srt_bind_acquire(id, descriptor) == 0 else { throw Failure("take the UDP socket") }
  }

  func receive(into buffer: UnsafeMutableRawBufferPointer) -> Received {
    var control = SRT_MSGCTRL()
    srt_msgctrl_init(&control)
    let count = srt_recvmsg2(
      id, buffer.assumingMemoryBound(to: CChar.self).baseAddress, Int32(clamping: buffer.count), &control)
    if count > 0 { return .packet(bytes: Int(count), number: control.pktseq) }
    return srt_getlasterror(nil) == SRT_EASYNCRCV.rawValue ? .nothing : .ended
  }

  var figures: LinkFigures? {
    var perf = SRT_TRACEBSTATS()
    guard srt_bistats(id, &perf, 0, 1) == 0 else { return nil }
    var figures = LinkFigures()
    figures.roundTrip = UInt32(Self.clamped(perf.msRTT * 1000))
    figures.received = UInt64(clamping: perf.pktRecvTotal)
    figures.lost = UInt64(clamping: perf.pktRcvLossTotal)
    // Since the last clearing, which never comes.
    figures.retransmitted = UInt64(clamping: perf.pktRcvRetrans)
    figures.dropped = UInt64(clamping: perf.pktRcvDropTotal)
    figures.undecrypted = UInt64(clamping: perf.pktRcvUndecryptTotal)
    figures.buffered = UInt32(clamping: perf.msRcvBuf)
    figures.latency = UInt32(clamping: perf.msRcvTsbPdDelay)
    figures.bandwidth = UInt64(Self.clamped(perf.mbpsBandwidth * 1000)) &* 1000
    return figures
  }

  private static func clamped(_ value: Double) -> Double { value.isFinite ? min(max(value, 0), 4e9) : 0 }

  func close() { _ = srt_close(id) }
}
