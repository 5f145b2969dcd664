internal import Base
internal import CSRT
internal import Glibc
internal import Publishing
internal import Synchronization

/// Decides about callers within libsrt's hook, which stands in the port's receiving thread: from the table, without
/// waiting. Counts callers by their hosts. Used by libsrt's threads and the worker's.
final class SRTAdmission: Sendable {
  /// A caller that the hook has let in.
  struct Caller {
    var id: SRTStreamID
    var peer: SRTPeer
    var isEncrypted: Bool
    var since: MonotonicTime
  }

  private struct State {
    var table = SRTTable()
    var peers = PeerTable(limits: SRTAdmission.limits)
    /// Callers within their handshakes.
    var shaking: [Int32: Caller] = [:]
    /// Callers that are connected, and whether they publish.
    var connected: [Int32: (caller: Caller, isAdmitted: Bool)] = [:]
    var replies: [SRTReply] = []

    mutating func fail(_ host: String, _ now: MonotonicTime) {
      guard peers.arrive(host, now: now) == nil else { return }
      peers.noLongerUnauthenticated(host, failed: true, now: now)
      peers.leave(host)
    }

    mutating func tell(_ peer: SRTPeer, _ stream: String, _ code: UInt16, _ reason: String, streamID: String = "") {
      guard replies.count < SRTLimits.waitingMessages else { return }
      replies.append(
        .rejected(
          SRTRefusal(
            address: peer.address, port: peer.port, stream: stream, code: code, reason: reason, streamID: streamID)))
    }
  }

  private let state = Mutex(State())

  private static var limits: PeerLimits {
    var limits = PeerLimits()
    limits.unauthenticatedPerAddress = SRTLimits.unauthenticatedPerAddress
    return limits
  }

  func use(_ table: SRTTable) { state.withLock { $0.table = table } }

  // MARK: the hook

  /// The hook's answer: 0 lets the caller in. Called by libsrt, which may call it again for the same handshake.
  func answer(_ socket: Int32, _ address: UnsafePointer<sockaddr>?, _ streamID: UnsafePointer<CChar>?) -> Int32 {
    guard let address, let peer = SRTPeer(UnsafeRawBufferPointer(start: address, count: Self.size(of: address))) else {
      return -1
    }
    let text = streamID.map { String(cString: $0) } ?? ""
    do throws(SRTRejection) {
      let entry = try admit(socket, peer, text)
      do {
        let socket = SRTSocket(id: socket)
        try socket.set(SRTO_LATENCY, Int32(entry.latency))
        if let phrase = entry.passphrase { try socket.set(SRTO_PASSPHRASE, phrase.text) }
      } catch {
        throw SRTRejection(.down, "\(error)")
      }
      return 0
    } catch {
      _ = srt_setrejectreason(socket, error.code.rawValue)
      reject(socket, peer, text, error)
      return -1
    }
  }

  private static func size(of address: UnsafePointer<sockaddr>) -> Int {
    let family = UnsafeRawPointer(address).loadUnaligned(as: sa_family_t.self)
    return Int32(family) == AF_INET6 ? 28 : 16
  }

  func admit(_ socket: Int32, _ peer: SRTPeer, _ text: String, now: MonotonicTime = .now()) throws(SRTRejection)
    -> SRTTable.Entry
  {
    try state.withLock { state throws(SRTRejection) in
      let id = try SRTStreamID(parsing: text, default: state.table.defaultStream)
      let (all, taken) = (Int(state.table.connections), state.shaking.count + state.connected.count)
      guard taken < all else {
        throw SRTRejection(.overload, "the server has \(all) SRT connections already (--max-srt-connections)")
      }
      let isSlowed = state.peers.slowing(peer.host, now: now) != nil
      let entry = try state.table.admit(id, from: peer.host, judgesKeys: !isSlowed)
      let most = Int(state.table.connectionsPerAddress)
      guard most == 0 || state.connected.values.count(where: { $0.caller.peer.host == peer.host }) < most else {
        throw SRTRejection(.overload, "more connections than an address may have (--max-connections-per-address)")
      }
      let own =
        state.shaking.values.count { $0.peer.host == peer.host }
        + state.connected.values.count { $0.caller.peer.host == peer.host }
      guard FairShare.allows(own: own, taken: taken, of: all, least: SRTLimits.connectionsOfSite) else {
        throw SRTRejection(
          .overload,
          "this address has \(own) of \(all) SRT connections, and may have half of what is left (--max-srt-connections)"
        )
      }
      guard state.peers.arrive(peer.host, now: now) == nil else {
        throw SRTRejection(.overload, "too many callers of this address do not publish")
      }
      state.shaking[socket] = Caller(id: id, peer: peer, isEncrypted: entry.passphrase != nil, since: now)
      return entry
    }
  }

  private func reject(_ socket: Int32, _ peer: SRTPeer, _ text: String, _ rejection: SRTRejection) {
    let now = MonotonicTime.now()
    state.withLock { state in
      if state.shaking.removeValue(forKey: socket) != nil {
        state.peers.noLongerUnauthenticated(peer.host, failed: false, now: now)
        state.peers.leave(peer.host)
      }
      if rejection.code.isFailure { state.fail(peer.host, now) }
      let id = try? SRTStreamID(parsing: text, default: state.table.defaultStream)
      state.tell(
        peer, id?.stream.description ?? "", UInt16(clamping: rejection.code.rawValue), rejection.reason,
        streamID: SRTStreamID.shown(text))
    }
  }

  // MARK: connections

  /// The caller of a connection that libsrt has finished.
  func connected(_ socket: Int32) -> Caller? {
    state.withLock { state in
      guard let caller = state.shaking.removeValue(forKey: socket) else { return nil }
      state.connected[socket] = (caller, false)
      return caller
    }
  }

  /// The server has admitted it as a publisher.
  func admitted(_ socket: Int32) {
    let now = MonotonicTime.now()
    state.withLock { state in
      guard let (caller, isAdmitted) = state.connected[socket], !isAdmitted else { return }
      state.connected[socket]?.isAdmitted = true
      state.peers.noLongerUnauthenticated(caller.peer.host, failed: false, now: now)
    }
  }

  func left(_ socket: Int32) {
    let now = MonotonicTime.now()
    state.withLock { state in
      guard let (caller, isAdmitted) = state.connected.removeValue(forKey: socket) else { return }
      if !isAdmitted { state.peers.noLongerUnauthenticated(caller.peer.host, failed: false, now: now) }
      state.peers.leave(caller.peer.host)
      // The server says so later: the caller may come back at once.
      state.table.busy[caller.id.stream.description] = nil
    }
  }

  /// What is to be told to the server. Callers whose handshake has not ended in time had another passphrase.
  func take(now: MonotonicTime) -> [SRTReply] {
    state.withLock { state in
      for (socket, caller) in state.shaking where now &- caller.since > SRTLimits.handshakePatience {
        state.shaking[socket] = nil
        state.peers.noLongerUnauthenticated(caller.peer.host, failed: true, now: now)
        state.peers.leave(caller.peer.host)
        let reason =
          caller.isEncrypted
          ? "the passphrase is missing or wrong, or the handshake was not finished"
          : "the caller encrypts, but this stream has no passphrase, or the handshake was not finished"
        state.tell(caller.peer, caller.id.stream.description, 0, reason)
      }
      defer { state.replies = [] }
      return state.replies
    }
  }
}
