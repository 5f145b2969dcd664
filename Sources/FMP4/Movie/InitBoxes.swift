public import NIOCore

extension InitSegment {
  /// Init segment with all tracks, for files and for fragments of `FragmentBoxes.interleavedHead(of:clock:)`.
  public var whole: ByteBuffer { InitBoxes.initSegment(of: tracks) }

  /// Init segment with the first track of each kind.
  package var interleaved: ByteBuffer { InitBoxes.initSegment(of: tracks.defaults) }

  /// Init segment with these of its tracks, for progressive fMP4.
  package func showing(_ tracks: [TrackDescription]) -> ByteBuffer { InitBoxes.initSegment(of: tracks) }

  /// CMAF init segment with one track, for fragments of `FragmentBoxes.singleHead(of:track:clock:)`.
  public func single(_ track: TrackDescription) -> ByteBuffer { InitBoxes.initSegment(of: [track]) }
}

/// Writes init segments: `ftyp` and `moov` with empty sample tables (ISO/IEC 14496-12 §8.2, §8.8.1).
enum InitBoxes {
  static func initSegment(of tracks: [TrackDescription]) -> ByteBuffer {
    let capacity = tracks.reduce(512) { $0 + 768 + TrackKind.room + $1.sampleEntryCapacity }
    return .boxes(capacity: capacity) { out in
      fileType(&out, tracks)
      out.box("moov") { out in
        MovieBoxes.movieHeader(
          &out, timescale: 1000, duration: 0, nextTrackID: (tracks.map(\.id.rawValue).max() ?? 0) &+ 1)
        for track in tracks {
          MovieBoxes.track(&out, track, MovieBoxes.Place(track, in: tracks)) {
            $0.sampleTable(SampleTable(timescale: track.timescale), descriptions: [track], shift: 0)
          }
        }
        out.box("mvex") { out in
          for track in tracks { MovieBoxes.trackExtends(&out, track.id) }
        }
      }
    }
  }

  /// §4.3: one-track files have the CMAF brand. The codec's own brand follows if it has one.
  private static func fileType(_ out: inout OutputRawSpan, _ tracks: [TrackDescription]) {
    out.box("ftyp") {
      $0.fourCC("iso6")
      $0.u32(0)  // minor_version
      $0.fourCC("iso6")
      $0.fourCC("mp41")
      if tracks.count == 1 { $0.fourCC("cmfc") }
      for brand in tracks.compactMap({ $0.codec.id.type.fileBrand }) { $0.fourCC(brand) }
    }
  }
}
