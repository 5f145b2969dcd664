package import NIOCore

extension InitSegment {
  /// All tracks in one: for HLS, progressive fMP4 and recordings.
  package var interleaved: ByteBuffer { InitBoxes.initSegment(of: tracks) }

  /// The one-track CMAF init segment of a track.
  package func single(_ track: TrackDescription) -> ByteBuffer { InitBoxes.initSegment(of: [track]) }
}

/// Writes init segments: `ftyp` + `moov` whose sample tables are there and empty (ISO/IEC 14496-12 §8.2, §8.8.1).
enum InitBoxes {
  static func initSegment(of tracks: [TrackDescription]) -> ByteBuffer {
    let capacity = tracks.reduce(512) { $0 + 768 + $1.sampleEntryCapacity }
    return .boxes(capacity: capacity) { out in
      fileType(&out, tracks)
      out.box("moov") { out in
        TrackBoxes.movieHeader(
          &out, timescale: 1000, duration: 0, nextTrackID: (tracks.map(\.id.rawValue).max() ?? 0) &+ 1)
        for track in tracks { self.track(&out, track) }
        out.box("mvex") { out in
          for track in tracks {
            // §8.8.3: every field that a fragment may leave out has its default here; fragments state theirs.
            out.fullBox("trex") {
              $0.u32(track.id.rawValue)
              $0.u32(1)
              $0.zeros(12)
            }
          }
        }
      }
    }
  }

  /// §4.3: one-track files are CMAF; the codec's own brand follows where it has one.
  private static func fileType(_ out: inout OutputRawSpan, _ tracks: [TrackDescription]) {
    out.box("ftyp") {
      $0.fourCC("iso6")
      $0.u32(0)
      $0.fourCC("iso6")
      $0.fourCC("mp41")
      if tracks.count == 1 { $0.fourCC("cmfc") }
      for track in tracks {
        if let brand = track.codec.fileBrand { $0.fourCC(brand) }
      }
    }
  }

  private static func track(_ out: inout OutputRawSpan, _ track: TrackDescription) {
    out.box("trak") { out in
      TrackBoxes.trackHeader(&out, track, duration: 0)
      out.box("mdia") { out in
        TrackBoxes.mediaHeader(&out, track, duration: 0)
        TrackBoxes.handler(&out, track)
        out.box("minf") { out in
          TrackBoxes.mediaInformationHeader(&out, track)
          TrackBoxes.dataInformation(&out)
          out.box("stbl") { out in
            out.fullBox("stsd") {
              $0.u32(1)
              track.writeSampleEntry(&$0)
            }
            out.fullBox("stts") { $0.u32(0) }
            out.fullBox("stsc") { $0.u32(0) }
            out.fullBox("stsz") { $0.u64(0) }
            out.fullBox("stco") { $0.u32(0) }
          }
        }
      }
    }
  }
}

extension Codec {
  var fileBrand: FourCC? {
    switch self {
    case .h264: "avc1"
    case .av1: "av01"
    case .opus: "Opus"
    case .hevc, .aac: nil
    }
  }
}
