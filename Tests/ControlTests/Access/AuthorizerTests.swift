import Base
@testable import Control
import FMP4
import Glibc
import Publishing
import Support
import Testing

@Suite struct AuthorizerTests {
  private let time = ManualClock()

  private func name(_ text: String) throws -> StreamName { try #require(StreamName(text)) }

  private func key(
    _ name: String, _ text: String, publish: [String] = [], scope: AdminScope? = nil, ends: WallTime? = nil
  ) throws -> AccessKey {
    var grant = AccessGrant(name: name, scope: scope, ends: ends)
    if !publish.isEmpty { grant.streams[.publish] = try publish.map { try StreamPattern(parsing: $0) } }
    return AccessKey(grant: grant, secret: Secret(text), madeAt: time.clock.wallTime)
  }

  @Test func withoutAnyKeyEverybodyPublishesAnonymously() throws {
    let authorizer = Authorizer(clock: time.clock)
    #expect(!authorizer.isClosed && !authorizer.hasAdministrators)
    #expect(authorizer.proof(of: nil, to: try name("cam"))?.right == .anonymous)
  }

  @Test func aKeyThatWasMadeClosesTheServerAndOpensItsOwnNames() throws {
    let authorizer = Authorizer(clock: time.clock)
    #expect(authorizer.keys.add(try key("laptop", "geheim", publish: ["cam-*"])))
    #expect(authorizer.isClosed)
    #expect(authorizer.proof(of: nil, to: try name("cam-1")) == nil)
    #expect(authorizer.proof(of: Secret("other"), to: try name("cam-1")) == nil)
    #expect(authorizer.proof(of: Secret("geheim"), to: try name("desk")) == nil)
    let proof = try #require(authorizer.proof(of: Secret("geheim"), to: try name("cam-1")))
    #expect(proof.right == .keyOfName && proof.name == "laptop" && proof.key == Secret("geheim"))
    #expect(authorizer.keys.add(try key("all", "alle", publish: ["*"])))
    #expect(authorizer.proof(of: Secret("alle"), to: try name("desk"))?.right == .keyForAllNames)
  }

  @Test func aNameIsGivenOnce() throws {
    let ring = KeyRing()
    #expect(ring.add(try key("a", "one", publish: ["x"])))
    #expect(!ring.add(try key("a", "two", publish: ["x"])))
    #expect(ring.grant(of: Secret("two")) == nil)
    #expect(ring.remove("a") && !ring.remove("a") && ring.grant(of: Secret("one")) == nil)
  }

  @Test func keysOfTheFileAreReplacedAndThoseThatWereMadeStay() throws {
    let authorizer = Authorizer(clock: time.clock)
    #expect(authorizer.keys.add(try key("laptop", "made", publish: ["cam-*"])))
    authorizer.follow(Authorizer.Rules(keys: [try key("desk", "written", publish: ["desk"], scope: .read)]))
    #expect(authorizer.proof(of: Secret("written"), to: try name("desk"))?.name == "desk")
    #expect(authorizer.proof(of: Secret("made"), to: try name("cam-1"))?.name == "laptop")
    #expect(authorizer.scope(of: Secret("written")) == .read && authorizer.keys.all.count == 2)
    #expect(!authorizer.keys.add(try key("desk", "other", publish: ["x"])), "the name is the file's")
    #expect(!authorizer.keys.remove("desk") && authorizer.keys.isConfigured("desk"))
    authorizer.follow(Authorizer.Rules())
    #expect(!authorizer.stillGives(Secret("written"), rightTo: try name("desk")))
    #expect(authorizer.scope(of: Secret("written")) == nil && authorizer.isClosed)
    #expect(authorizer.stillGives(Secret("made"), rightTo: try name("cam-1")))
  }

  @Test func whoMayRecordAStreamOperatesItAlone() throws {
    let authorizer = Authorizer(clock: time.clock)
    var grant = AccessGrant(name: "director")
    grant.streams[.record] = [try StreamPattern(parsing: "cam-*")]
    #expect(authorizer.keys.add(AccessKey(grant: grant, secret: Secret("geheim"), madeAt: 7)))
    #expect(authorizer.hasAdministrators && !authorizer.isClosed)
    #expect(authorizer.scope(of: Secret("geheim")) == nil)
    #expect(authorizer.scope(of: Secret("geheim"), orRecording: try name("cam-1")) == .operate)
    #expect(authorizer.scope(of: Secret("geheim"), orRecording: try name("desk")) == nil)
    #expect(authorizer.scope(of: Secret("other"), orRecording: try name("cam-1")) == nil)
  }

  @Test func anExpiredKeyAdmitsNobodyAndEndsNothing() throws {
    let authorizer = Authorizer(clock: time.clock)
    let ends = time.clock.wallTime &+ 1_000_000_000
    #expect(authorizer.keys.add(try key("short", "geheim", publish: ["*"], scope: .operate, ends: ends)))
    #expect(authorizer.proof(of: Secret("geheim"), to: try name("cam")) != nil)
    #expect(authorizer.scope(of: Secret("geheim")) == .operate)
    time.advance(seconds: 1)
    #expect(authorizer.proof(of: Secret("geheim"), to: try name("cam")) == nil)
    #expect(authorizer.scope(of: Secret("geheim")) == nil)
    #expect(authorizer.stillGives(Secret("geheim"), rightTo: try name("cam")))
    #expect(authorizer.credential(of: "geheim")?.grant.holds(at: time.clock.wallTime) == false)
  }

  @Test func aRevokedKeyGivesNothing() throws {
    var keys = PublishKeys()
    keys.add(Secret("old"), for: .all)
    let authorizer = Authorizer(Authorizer.Rules(publishKeys: keys), clock: time.clock)
    #expect(authorizer.stillGives(Secret("old"), rightTo: try name("cam")))
    authorizer.follow(Authorizer.Rules())
    #expect(!authorizer.stillGives(Secret("old"), rightTo: try name("cam")))
  }

  @Test func whoMustShowAKeyDoesWhereOthersNeedNone() async throws {
    let authorizer = Authorizer(clock: time.clock)
    let cam = try name("cam")
    func right(_ key: String?, _ credential: PublishRequest.Credential) async -> PublishRight? {
      var request = PublishRequest(
        stream: cam, key: key.map { Secret($0) }, protocolName: "WebRTC", remoteAddress: "10.0.0.1:5"
      ) { _ in }
      request.credential = credential
      return try? await authorizer.proof(of: request).right
    }
    for rule in PublishersRule.allCases where rule != .key {
      authorizer.follow(Authorizer.Rules(publishers: rule))
      #expect(await right(nil, .asConfigured) == .anonymous)
      #expect(await right(nil, .required) == nil)
      #expect(await right("any", .required) == nil, "there is no key that it could be")
    }
    #expect(authorizer.keys.add(try key("studio", "geheim", publish: ["cam"])))
    #expect(await right("geheim", .required) == .keyOfName)
    #expect(await right("other", .required) == nil)
    #expect(await right(nil, .required) == nil)
  }

  // MARK: The last key

  @Test func losingTheLastKeyDoesNotOpenTheServer() throws {
    let authorizer = Authorizer(clock: time.clock)
    #expect(authorizer.keys.add(try key("laptop", "geheim", publish: ["*"])))
    #expect(authorizer.keys.remove("laptop"))
    #expect(authorizer.isClosed && authorizer.isClosedToAll && authorizer.staysClosed)
    #expect(authorizer.proof(of: nil, to: try name("cam")) == nil)
    #expect(authorizer.proof(of: Secret("geheim"), to: try name("cam")) == nil)
    #expect(authorizer.knownPublishKeys == nil, "a protocol that may not wait does not take it for open")
    // A configuration without keys does not, either; one that says so does.
    authorizer.follow(Authorizer.Rules())
    #expect(authorizer.isClosed)
    authorizer.follow(Authorizer.Rules(publishers: .open))
    #expect(!authorizer.isClosed)
    #expect(authorizer.proof(of: nil, to: try name("cam"))?.right == .anonymous)
    authorizer.follow(Authorizer.Rules())
    #expect(!authorizer.isClosed, "it was opened")
  }

  @Test func keysOfTheConfigurationAndACallbackCloseForGoodAsWell() throws {
    var keys = PublishKeys()
    keys.add(Secret("old"), for: .all)
    let callback = AuthorizationCallback.Settings(url: "http://127.0.0.1:1/")
    for rules in [Authorizer.Rules(publishKeys: keys), Authorizer.Rules(callback: callback)] {
      let authorizer = Authorizer(rules, clock: time.clock)
      authorizer.follow(Authorizer.Rules())
      #expect(authorizer.isClosedToAll)
      #expect(authorizer.proof(of: nil, to: try name("cam")) == nil)
    }
    let written = Authorizer(Authorizer.Rules(keys: [try key("desk", "written", publish: ["desk"])]), clock: time.clock)
    written.follow(Authorizer.Rules())
    #expect(written.isClosedToAll)
  }

  @Test func anEarlierProcessThatNeededKeysClosesThisOne() throws {
    let authorizer = Authorizer(clock: time.clock)
    authorizer.restoreClosed()
    #expect(authorizer.isClosedToAll)
    let open = Authorizer(Authorizer.Rules(publishers: .open), clock: time.clock)
    open.restoreClosed()
    open.noteKeys()
    #expect(!open.isClosed && !open.staysClosed)
    // Keys are needed while there are any.
    #expect(open.keys.add(try key("laptop", "geheim", publish: ["*"])))
    #expect(open.isClosed)
    #expect(Authorizer(Authorizer.Rules(publishers: .key), clock: time.clock).isClosedToAll)
  }

  // MARK: Many keys

  @Test func pagesOfKeysAreSortedAndLeaveNoneOut() throws {
    let ring = KeyRing()
    ring.restore(try (0..<250).map { try key("made-\($0)", "text-\($0)", publish: ["x"]) })
    ring.configure(try ["a", "made-7", "z"].map { try key($0, "file-\($0)", publish: ["x"]) })
    var names: [String] = []
    var after: String?
    repeat {
      let page = ring.page(after: after, limit: 10)
      #expect(page.total == 253 && (10...11).contains(page.keys.count) || !page.isMore)
      names += page.keys.map(\.grant.name)
      after = page.isMore ? page.keys.last?.grant.name : nil
    } while after != nil
    #expect(names == names.sorted() && names.count == 253 && names.filter { $0 == "made-7" }.count == 2)
    #expect(ring.page(after: "zz", limit: 10).keys.isEmpty)
    #expect(ring.remove("made-100") && !ring.all.contains { $0.grant.name == "made-100" })
    #expect(ring.add(try key("made-100", "new", publish: ["x"])))
    #expect(ring.all.map(\.grant.name) == names)
  }

  @Test func textsOfKeysAreLongAndUnlike() {
    var generator = SystemRandomNumberGenerator()
    let texts = Set((0..<100).map { _ in AccessKey.text(using: &generator) })
    #expect(texts.count == 100 && texts.allSatisfy { $0.count == 35 && $0.hasPrefix("wk_") })
  }

  @Test func aSecretIsStoredAsItsDigest() throws {
    let secret = Secret("geheim")
    #expect(secret.hex.count == 64 && !secret.hex.contains("geheim"))
    #expect(Secret(hex: secret.hex) == secret && Secret(hex: secret.hex.uppercased()) == secret)
    #expect(Secret(hex: "") == nil && Secret(hex: "zz" + secret.hex.dropFirst(2)) == nil && Secret(hex: "é") == nil)
  }

  @Test func theDatabaseKeepsKeysAndSettings() throws {
    let folder = try TemporaryFolder()
    var grant = AccessGrant(name: "full", scope: .read, ends: 5_000_000_000)
    grant.streams = [.publish: [try StreamPattern(parsing: "a-*"), .all], .watch: [try StreamPattern(parsing: "b")]]
    do {
      let database = try ControlDatabase(folder: folder.path)
      try database.add(AccessKey(grant: grant, secret: Secret("geheim"), madeAt: 7))
      #expect(throws: (any Error).self) {
        try database.add(AccessKey(grant: grant, secret: Secret("other"), madeAt: 7))
      }
      try database.setSettings("{}", of: try name("cam"))
      try database.setSettings("{\"window\": \"20s\"}", of: try name("cam"))
      database.close()
    }
    let database = try ControlDatabase(folder: folder.path)
    let key = try #require(try database.keys().first)
    #expect(key.secret == Secret("geheim") && key.grant.scope == .read && key.grant.ends == 5_000_000_000)
    #expect(key.grant.streams.mapValues { $0.map(\.description) } == [.publish: ["a-*", "*"], .watch: ["b"]])
    #expect(try database.settings().texts == [try name("cam"): "{\"window\": \"20s\"}"])
    try database.removeKey("full")
    try database.setSettings(nil, of: try name("cam"))
    #expect(try database.keys().isEmpty && database.settings().texts.isEmpty)
    #expect(try database.isClosed(), "a key that allowed to publish was kept")
    try database.setClosed(false)
    #expect(try !database.isClosed())
  }

  @Test func aDatabaseThatIsNoneIsAnErrorAndStays() throws {
    let folder = try TemporaryFolder()
    let path = "\(folder.path)/\(ControlDatabase.fileName)"
    let file = try #require(fopen(path, "w"))
    fputs(String(repeating: "no database\n", count: 1000), file)
    fclose(file)
    #expect(throws: (any Error).self) { try ControlDatabase(folder: folder.path) }
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_size == 12_000)
  }
}
