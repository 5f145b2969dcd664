/// Configuration records of streams that were encoded for these tests (640×360).
package enum PublishedRecord {
  /// H.264 High, 25 frames a second.
  package static let avc25 = SyntheticMedia.hex(
    "0164001effe1001a6764001eacd940a02ff97011000003000100000300320f162d9601000468ef8fcbfdf8f800")
  /// H.264 High, 30000/1001 frames a second.
  package static let avc2997 = SyntheticMedia.hex(
    "0164001effe100196764001eacd940a02ff9701100000303e90000ea600f162d9601000468ef8fcbfdf8f800")
  package static let av1 = SyntheticMedia.hex("81010c000a0c0200000d2627fb3805f00080")
  /// AAC-LC, 48 kHz, stereo; and 44.1 kHz.
  package static let aac48: [UInt8] = [0x11, 0x90]
  package static let aac44: [UInt8] = [0x12, 0x10]
  package static let opusHead: [UInt8] = Array("OpusHead".utf8) + [1, 2, 0x38, 1, 0x80, 0xBB, 0, 0, 0, 0, 0]
}
