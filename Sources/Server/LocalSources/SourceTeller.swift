package import Control
internal import Local
internal import Publishing

/// Tells of devices of the server's own sources that go away and come back. Looks at their status about twice a second.
package struct SourceTeller {
  private let events: EventLog
  /// The devices that are away.
  private var away: [Device: String] = [:]

  private struct Device: Hashable {
    let source: String
    let kind: String
  }

  package init(_ events: EventLog) { self.events = events }

  package mutating func look(at sources: SourceRegistry) {
    for source in sources.all {
      let status = source.status
      note(status?.video?.state, Device(source: source.name.description, kind: "camera"), status?.video?.device)
      note(status?.audio?.state, Device(source: source.name.description, kind: "microphone"), status?.audio?.device)
    }
  }

  private mutating func note(_ state: CaptureStatus.State?, _ device: Device, _ path: String?) {
    switch state {
    case .away(let reason):
      guard away.updateValue(reason, forKey: device) == nil else { return }
      tell(.sourceAway, device, path, reason)
    case .running:
      guard away.removeValue(forKey: device) != nil else { return }
      tell(.sourceBack, device, path, nil)
    case .starting: break
    // The source was stopped: what it is away from is of no interest any more.
    case nil: away[device] = nil
    }
  }

  private func tell(_ kind: EventKind, _ device: Device, _ path: String?, _ reason: String?) {
    events.tell(
      kind, of: device.source,
      ["device": .text(orNull: path), "deviceKind": .text(device.kind), "reason": .text(orNull: reason)])
  }
}
