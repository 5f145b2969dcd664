internal import NIOCore

/// The bytes of an audio track whose frames begin with a sync word, and whether one begins with the next byte.
struct AudioSync {
  var bytes = AudioBytes()
  private(set) var damaged = 0
  /// A frame begins with the next byte. Otherwise a header counts only if another one follows its frame.
  private var isAligned = false

  mutating func begin() { if bytes.count == 0 { isAligned = true } }

  mutating func drop() {
    bytes.removeAll()
    isAligned = false
  }

  /// Counts a frame that cannot be used.
  mutating func noteDamage() { damaged &+= 1 }

  /// Skips bytes that are no frame. A run of them counts once.
  mutating func lose(_ count: Int = 1) {
    if isAligned || count > 1 { damaged &+= 1 }
    isAligned = false
    bytes.skip(count)
  }

  /// The header of the next frame, all bytes of which are there. They are not taken. Nil if more bytes are needed.
  ///
  /// - Parameters:
  ///   - least: bytes that `header` needs.
  ///   - header: the header at the first byte; nil if there is none.
  ///   - isExpected: whether the header is like those before. Another one counts only if one like it follows its frame.
  ///   - following: bytes that `follows` needs.
  ///   - follows: whether another header may begin at that offset.
  mutating func frame<Header>(
    least: Int, header: (AudioBytes) -> (Header, byteCount: Int)?, isExpected: (Header) -> Bool = { _ in true },
    following: Int, follows: (AudioBytes, Int) -> Bool
  ) -> Header? {
    while bytes.count >= least {
      guard let (found, byteCount) = header(bytes) else {
        lose()
        continue
      }
      if !isAligned || !isExpected(found) {
        guard bytes.count >= byteCount &+ following else { return nil }
        guard follows(bytes, byteCount) else {
          lose()
          continue
        }
      }
      guard bytes.count >= byteCount else { return nil }
      isAligned = true
      return found
    }
    return nil
  }
}

/// A reader of frames that begin with a sync word.
protocol SyncedAudioReader: AudioFrameReader {
  var sync: AudioSync { get set }
}

extension SyncedAudioReader {
  var damaged: Int { sync.damaged }
  mutating func begin() { sync.begin() }
  mutating func append(_ more: ByteBuffer) { sync.bytes.append(more) }
}
