internal import Base
internal import NIOCore
internal import Settings

/// An address to listen at, and how.
struct ListeningSocket: Sendable {
  let setting: SettingName
  let address: ListenAddress
  /// Its socket was passed to this process: it stays where it is until weir starts again.
  let isInherited: Bool
  /// Starts to listen; returns the address with the chosen port.
  let start: @Sendable () async throws -> SocketAddress
  /// Stops to listen there and ends its connections.
  let stop: @Sendable (SocketAddress) async -> Void
}

/// Where the server listens. Others are added and removed while it runs.
actor ListeningSockets {
  private var open: [SettingName: (place: ListeningSocket, bound: SocketAddress)] = [:]

  func add(_ place: ListeningSocket, bound: SocketAddress) { open[place.setting] = (place, bound) }

  /// The places that `next` has and the server does not listen at yet, opened. If one of them cannot be opened, none is.
  /// A place whose port is still taken by the one that it replaces cannot be opened beside it.
  func opened(of next: [ListeningSocket]) async throws -> [(place: ListeningSocket, bound: SocketAddress)] {
    var opened: [(place: ListeningSocket, bound: SocketAddress)] = []
    for place in next where !isOpen(place) {
      do {
        opened.append((place, try await place.start()))
      } catch {
        for one in opened { await one.place.stop(one.bound) }
        throw error
      }
    }
    return opened
  }

  private func isOpen(_ place: ListeningSocket) -> Bool {
    guard let open = open[place.setting]?.place else { return false }
    return open.isInherited || open.address == place.address
  }

  /// Takes over what `opened` returned, and closes what `next` has no longer.
  func replace(with opened: [(place: ListeningSocket, bound: SocketAddress)], next: [ListeningSocket]) async {
    let kept = Set(next.map(\.setting)).subtracting(opened.map(\.place.setting))
    let closing = open.filter { !kept.contains($0.key) && !$0.value.place.isInherited }
    for (setting, _) in closing { open[setting] = nil }
    for one in opened { open[one.place.setting] = one }
    for one in closing.values { await one.place.stop(one.bound) }
  }
}
