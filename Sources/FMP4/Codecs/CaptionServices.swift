/// One service of closed captions in a video (CTA-608, CTA-708).
package enum CaptionService: Hashable, Comparable, Sendable {
  /// CC1 to CC4 of CEA-608.
  case channel(Int)
  /// A service of CEA-708, from 1 to 63.
  case service(Int)

  /// Nil if there is no such service. `name` as `INSTREAM-ID` has it (RFC 8216bis §4.4.6.1): CC1, SERVICE1.
  package init?(_ name: some StringProtocol) {
    if name.hasPrefix("CC"), let number = Int(name.dropFirst(2)), (1...4).contains(number) {
      self = .channel(number)
    } else if name.hasPrefix("SERVICE"), let number = Int(name.dropFirst(7)), (1...63).contains(number) {
      self = .service(number)
    } else {
      return nil
    }
  }

  package var name: String {
    switch self {
    case .channel(let number): "CC\(number)"
    case .service(let number): "SERVICE\(number)"
    }
  }
}

/// The services of closed captions that are found in a video.
package struct CaptionServices: Hashable, Sendable {
  private var channels: UInt8 = 0
  private var services: UInt64 = 0

  package init() {}

  package var isEmpty: Bool { channels == 0 && services == 0 }

  package mutating func insert(_ service: CaptionService) {
    switch service {
    case .channel(let number): channels |= 1 << UInt8(number & 7)
    case .service(let number): services |= 1 << UInt64(number & 63)
    }
  }

  package mutating func formUnion(_ other: CaptionServices) {
    channels |= other.channels
    services |= other.services
  }

  /// Channels first, by number.
  package var all: [CaptionService] {
    (1...4).filter { channels & 1 << UInt8($0) != 0 }.map(CaptionService.channel)
      + (1...63).filter { services & 1 << UInt64($0) != 0 }.map(CaptionService.service)
  }
}

extension CaptionServices {
  /// Reads what a registered message of user data carries (ATSC A/53-4 §6.2.3): after its country and provider, `GA94`, a
  /// type, and `cc_data`. Nothing for other messages, and for one that ends early.
  mutating func read(userData message: BitReader) {
    var message = message
    // United States, ATSC, "GA94", cc_data.
    guard (try? message.bits(8)) == 0xB5, (try? message.bits(16)) == 0x31, (try? message.bits(32)) == 0x4741_3934,
      (try? message.bits(8)) == 3, let flags = try? message.bits(8), flags & 0x40 != 0, (try? message.skip(8)) != nil
    else { return }
    var packet: [UInt8] = []
    for _ in 0..<flags & 31 {
      guard let head = try? message.bits(8), let first = try? message.bits(8), let second = try? message.bits(8) else {
        break
      }
      let pair = (UInt8(truncatingIfNeeded: first), UInt8(truncatingIfNeeded: second))
      switch (head & 4 != 0, head & 3) {
      case (true, 0): read(pair, isSecondField: false)
      case (true, 1): read(pair, isSecondField: true)
      case (true, 3):
        read(packet: packet)
        packet = [pair.0, pair.1]
      case (true, _): packet += [pair.0, pair.1]
      case (false, _): break
      }
    }
    read(packet: packet)
  }

  /// A pair of CEA-608. Valid pairs of the first field, also those without content, say that line 21 is there: CC1. The
  /// other channels count once a command of theirs comes (CTA-608 §8.4, table 52).
  private mutating func read(_ pair: (UInt8, UInt8), isSecondField: Bool) {
    if !isSecondField { insert(.channel(1)) }
    let (first, second) = (pair.0 & 0x7F, pair.1 & 0x7F)
    // Resume caption loading, roll-up of two to four rows, resume direct captioning.
    guard [0x14, 0x15, 0x1C, 0x1D].contains(first), [0x20, 0x25, 0x26, 0x27, 0x29].contains(second) else { return }
    insert(.channel((isSecondField ? 3 : 1) + (first & 8 != 0 ? 1 : 0)))
  }

  /// The service blocks of a caption channel packet of CEA-708 (CTA-708 §5, §6.2), or of its beginning.
  private mutating func read(packet: [UInt8]) {
    guard let header = packet.first else { return }
    let size = Int(header & 0x3F)
    var rest = packet.prefix(size == 0 ? 128 : size * 2).dropFirst()
    while let block = rest.popFirst() {
      var number = Int(block >> 5)
      let length = Int(block & 31)
      if number == 7, length > 0 { number = rest.popFirst().map { Int($0 & 0x3F) } ?? 0 }
      guard number > 0, length > 0 else { return }
      insert(.service(number))
      rest = rest.dropFirst(length)
    }
  }
}
