import Glibc
@testable import HTTP
import Testing

@Suite struct ControlSocketTests {
  private let folder: String

  init() throws {
    var template = Array("/tmp/weir-test-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private var path: String { folder + "/weir.sock" }

  private func isThere() -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  @Test func onlyItsUserMayConnect() throws {
    let control = try ControlSocket.listen(at: path)
    var status = stat()
    #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK)
    #expect(status.st_mode & 0o777 == 0o600)
    #expect(ControlSocket.probe(path) == nil)
    close(control.descriptor)
    control.remove()
    #expect(!isThere())
  }

  @Test func aStaleSocketIsReplacedAndALiveOneIsNot() throws {
    let first = try ControlSocket.listen(at: path)
    #expect(throws: ControlSocket.Failure.inUse) { try ControlSocket.listen(at: path) }
    close(first.descriptor)
    #expect(ControlSocket.probe(path) == .system(ECONNREFUSED))
    let second = try ControlSocket.listen(at: path)
    // A server that ends late leaves the file of the next one alone.
    first.remove()
    #expect(isThere())
    close(second.descriptor)
    second.remove()
    #expect(!isThere())
  }

  @Test func anythingElseAtThePathIsLeftAlone() throws {
    let file = open(path, O_CREAT | O_WRONLY, 0o644)
    close(file)
    #expect(throws: ControlSocket.Failure.isNoSocket) { try ControlSocket.listen(at: path) }
    #expect(isThere())
    unlink(path)
    #expect(ControlSocket.probe(path) == .system(ENOENT))
  }

  @Test func aPathFitsIntoAnAddress() throws {
    let longest = folder + "/" + String(repeating: "a", count: 106 - folder.utf8.count)
    #expect(longest.utf8.count == 107)
    #expect(throws: ControlSocket.Failure.tooLong) { try ControlSocket.listen(at: longest + "a") }
    let control = try ControlSocket.listen(at: longest)
    close(control.descriptor)
    control.remove()
  }

  @Test func theServiceComesBeforeTheUser() {
    #expect(ControlSocket.standardPaths([:]) == ["/run/weir/weir.sock"])
    #expect(
      ControlSocket.standardPaths(["RUNTIME_DIRECTORY": "/run/a:/run/b", "XDG_RUNTIME_DIR": "/run/user/1000"])
        == ["/run/a/weir.sock", "/run/user/1000/weir.sock"])
    #expect(ControlSocket.standardPaths(["XDG_RUNTIME_DIR": "relative"]) == ["/run/weir/weir.sock"])
    #expect(ControlSocket.standardPath(["RUNTIME_DIRECTORY": "/nonexistent", "XDG_RUNTIME_DIR": folder]) == path)
    #expect(ControlSocket.standardPath(["RUNTIME_DIRECTORY": "/nonexistent"]) == nil)
  }

  /// Both ends of a pair belong to this process.
  @Test func aPeerOfTheSameUserIsAllowed() throws {
    var pair: [CInt] = [0, 0]
    #expect(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &pair) == 0)
    defer { for descriptor in pair { close(descriptor) } }
    #expect(ControlSocket.allows(pair[0]))
    #expect(!ControlSocket.allows(-1))
  }
}
