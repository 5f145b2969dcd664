import Base
import Glibc
import Publishing
@testable import SRT
import Testing

/// What the worker decides about callers without asking.
@Suite struct SRTTableTests {
  private static func key(_ names: String, _ text: String) -> SRTTable.Key {
    SRTTable.Key(names: NamePattern(names), digest: Secret(text).digest)
  }

  private static func entry(_ names: String, _ phrase: String?, _ latency: UInt16) -> SRTTable.Entry {
    SRTTable.Entry(names: NamePattern(names), passphrase: phrase.flatMap { SRTPassphrase($0) }, latency: latency)
  }

  /// The code of the rejection; nil for a caller that is let in.
  private func code(
    _ table: SRTTable, _ id: String, from host: String = "192.0.2.1", judgesKeys: Bool = true
  ) throws -> Int32? {
    let id = try SRTStreamID(parsing: id)
    do throws(SRTRejection) {
      _ = try table.admit(id, from: host, judgesKeys: judgesKeys)
      return nil
    } catch {
      return error.code.rawValue
    }
  }

  @Test func connectionsFitIntoTheMemory() {
    // 256 MiB and 1 GiB; the usual 400 from 1.6 GiB on; the smallest machine.
    #expect([256, 1024, 1600, 8].map { SRTLimits.connections(ofMemory: $0 << 20) } == [64, 256, 400, 16])
  }

  @Test func theMostSpecificSettingsHold() throws {
    var table = SRTTable()
    table.entries = [Self.entry("cam", "0123456789", 300), Self.entry("cam*", nil, 200), Self.entry("*", nil, 100)]
    #expect(try table.admit(SRTStreamID(parsing: "cam"), from: "", judgesKeys: true).latency == 300)
    #expect(try table.admit(SRTStreamID(parsing: "cam2"), from: "", judgesKeys: true).latency == 200)
    #expect(try table.admit(SRTStreamID(parsing: "stage"), from: "", judgesKeys: true).latency == 100)
  }

  @Test func keysAreJudgedByNameAndText() throws {
    var table = SRTTable()
    #expect(try code(table, "cam") == nil)
    table.keys = [Self.key("cam", "one"), Self.key("stage-*", "two")]
    #expect(try code(table, "cam?key=one") == nil)
    #expect(try code(table, "stage-1?key=two") == nil)
    #expect(try code(table, "cam") == 1401)
    #expect(try code(table, "cam?key=three") == 1401)
    #expect(try code(table, "cam?key=two") == 1403)
    #expect(try code(table, "cam?key=three", judgesKeys: false) == nil)
    table.keys = nil
    #expect(try code(table, "cam?key=three") == nil)
  }

  @Test func `Callers without a stream ID publish one stream, and hear that it needs a key`() throws {
    let (admission, peer) = (SRTAdmission(), SRTPeer(address: "192.0.2.1", port: 1, host: "192.0.2.1"))
    #expect { _ = try admission.admit(1, peer, "") } throws: {
      ($0 as? SRTRejection)?.code == .badRequest && "\($0)".contains("--srt-default-stream")
    }
    var table = SRTTable()
    table.defaultStream = StreamName("stage")
    admission.use(table)
    _ = try admission.admit(2, peer, "")
    #expect(admission.connected(2)?.id.stream.description == "stage")
    table.keys = [Self.key("stage", "one")]
    admission.use(table)
    #expect { _ = try admission.admit(3, peer, "") } throws: { error in
      guard let error = error as? SRTRejection else { return false }
      return error.code == .unauthorized && error.reason.contains("publish stage (--srt-default-stream)")
        && error.reason.contains("needs a key")
    }
    #expect(throws: Never.self) { _ = try admission.admit(4, peer, "?key=one") }
  }

  @Test func `A refusal has the stream ID that came, without secrets`() throws {
    let admission = SRTAdmission()
    let address: [UInt8] = [UInt8(AF_INET), 0, 0x27, 0x0F, 192, 0, 2, 7] + [UInt8](repeating: 0, count: 8)
    for text in ["a b?key=SECRET", "#!::r=cam,m=request,s=SECRET", ""] {
      let answer = address.withUnsafeBytes {
        admission.answer(0x3FFF_FFFD, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), text)
      }
      #expect(answer == -1)
    }
    let told = admission.take(now: .now()).compactMap { if case .rejected(let refusal) = $0 { refusal } else { nil } }
    #expect(told.map(\.streamID) == ["a***", "#!::r=cam,m=request,s=***", ""])
    #expect(told.allSatisfy { !$0.reason.contains("SECRET") && !$0.stream.contains("SECRET") })
  }

  @Test func aNameThatIsHeldIsAConflict() throws {
    var table = SRTTable()
    table.busy = ["cam": "192.0.2.1"]
    #expect(try code(table, "cam") == 1409)
    #expect(try code(table, "stage") == nil)
    table.keys = [Self.key("cam", "own"), Self.key("*", "all")]
    #expect(try code(table, "cam?key=own", from: "192.0.2.9") == nil)
    #expect(try code(table, "cam?key=all", from: "192.0.2.9") == 1409)
    #expect(try code(table, "cam?key=all", from: "192.0.2.1") == nil)
    table.keys = nil
    #expect(try code(table, "cam") == nil)
  }

  @Test func aPassphraseHas10To79CharactersAndIsNotPrinted() throws {
    #expect(SRTPassphrase(String(repeating: "a", count: 9)) == nil)
    #expect(SRTPassphrase(String(repeating: "a", count: 10)) != nil)
    #expect(SRTPassphrase(String(repeating: "a", count: 79)) != nil)
    #expect(SRTPassphrase(String(repeating: "a", count: 80)) == nil)
    let phrase = try #require(SRTPassphrase("0123456789"))
    var text = ""
    dump(SRTTable.Entry(names: NamePattern("*"), passphrase: phrase, latency: 1), to: &text)
    #expect(!"\(phrase) \(String(reflecting: phrase)) \(text)".contains("0123"))
  }

  @Test func callersOfAnAddressAreCounted() throws {
    let admission = SRTAdmission()
    let now = MonotonicTime.now()
    let peer = SRTPeer(address: "192.0.2.1", port: 1, host: "192.0.2.1")
    for socket in 0..<Int32(SRTLimits.unauthenticatedPerAddress) {
      _ = try admission.admit(socket, peer, "cam-\(socket)", now: now)
    }
    #expect { _ = try admission.admit(100, peer, "cam", now: now) } throws: { ($0 as? SRTRejection)?.code == .overload }
    let other = SRTPeer(address: "192.0.2.2", port: 1, host: "192.0.2.2")
    _ = try admission.admit(101, other, "stage", now: now)
    #expect(admission.connected(101) != nil)
    // Their handshakes do not end: their passphrases were wrong.
    let replies = admission.take(now: now &+ 2 * SRTLimits.handshakePatience)
    #expect(replies.count == SRTLimits.unauthenticatedPerAddress)
    _ = try admission.admit(100, peer, "cam", now: now)
    #expect(admission.connected(5) == nil)
  }

  @Test func sevenAddressesDoNotTakeAllConnections() throws {
    let (admission, now) = (SRTAdmission(), MonotonicTime.now())
    var socket: Int32 = 0
    func call(_ host: String) -> SRTRejection? {
      socket += 1
      do throws(SRTRejection) {
        _ = try admission.admit(socket, SRTPeer(address: host, port: 1, host: host), "cam-\(socket)", now: now)
        _ = admission.connected(socket)
        admission.admitted(socket)
        return nil
      } catch {
        return error
      }
    }
    let held = (1...7).map { number in
      var count = 0
      while count < 300, call("192.0.2.\(number)") == nil { count += 1 }
      return count
    }
    #expect(held == [200, 100, 50, 25, 12, 6, 3])
    let refusal = call("192.0.2.1")
    #expect(refusal?.code == .overload && refusal?.reason.contains("--max-srt-connections") == true)
    #expect(call("198.51.100.1") == nil)
    while call("198.51.100.\(socket)") == nil {}
    #expect(call("203.0.113.1")?.reason.contains("400 SRT connections already") == true)
    admission.left(1)
    #expect(call("203.0.113.1") == nil)
    var table = SRTTable()
    table.connections = 500
    admission.use(table)
    #expect(call("203.0.113.2") == nil)
  }

  @Test func memoryOfConnectionsThatEndIsGivenBackOnceAndLater() {
    var leftovers = SRTLeftovers()
    let second: Int64 = 1_000_000_000
    let begin = MonotonicTime(nanoseconds: second)
    var answers = [leftovers.areDue(now: .max)]
    for number in 0..<5 { leftovers.add(now: begin &+ Int64(number) * second) }
    for number: Int64 in [6, 7, 100] { answers.append(leftovers.areDue(now: begin &+ number * second)) }
    #expect(answers == [false, false, true, false], "once, after a while")
    // Where they end all the time it is not put off for ever.
    let due = (0..<60).filter { number in
      let now = begin &+ (200 + Int64(number)) * second
      leftovers.add(now: now)
      return leftovers.areDue(now: now)
    }
    #expect(due == [15, 30, 45])
    // The last ones are given back, too.
    let rest = [60, 61, 62, 63, 100].map { (number: Int64) in leftovers.areDue(now: begin &+ (200 + number) * second) }
    #expect(rest == [true, false, true, false, false])
  }

  /// No setting of weir's leads there: latencies have 16 bits, and passphrases have allowed lengths. libsrt refuses options of a
  /// socket that is gone.
  @Test func whoseSocketTakesNoSettingsIsRejectedAndHoldsNoPlace() {
    let admission = SRTAdmission()
    let gone: Int32 = 0x3FFF_FFFE
    let address: [UInt8] = [UInt8(AF_INET), 0, 0x27, 0x0F, 192, 0, 2, 7] + [UInt8](repeating: 0, count: 8)
    let answers = (0...SRTLimits.unauthenticatedPerAddress).map { _ in
      address.withUnsafeBytes { admission.answer(gone, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), "cam") }
    }
    #expect(answers.allSatisfy { $0 == -1 })
    let told = admission.take(now: .now()).compactMap { if case .rejected(let refusal) = $0 { refusal } else { nil } }
    #expect(told.count == answers.count)
    #expect(told.allSatisfy { $0.code == 1503 && $0.stream == "cam" && $0.address == "192.0.2.7" && $0.port == 9999 })
  }

  @Test func missingPacketsAreCountedOverTheWrap() {
    #expect(SRTWorker.missing(between: 5, and: 6) == 0)
    #expect(SRTWorker.missing(between: 5, and: 9) == 3)
    #expect(SRTWorker.missing(between: Int32.max, and: 0) == 0)
    #expect(SRTWorker.missing(between: Int32.max - 1, and: 2) == 3)
    #expect(SRTWorker.missing(between: 9, and: 5) == 0)
  }
}
