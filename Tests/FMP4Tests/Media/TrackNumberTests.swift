import FMP4
import Support
import Testing

struct TrackNumberTests {
  @Test func `Tracks are numbered within their kind`() throws {
    #expect(TrackID(.video, 1) == .video && TrackID(.audio, 1) == .audio)
    #expect([TrackID(.video, 2), TrackID(.audio, 2), TrackID(.video, 16)].map(\.rawValue) == [3, 4, 31])
    #expect(TrackID(.audio, 0) == .audio && TrackID(.video, .max).rawValue % 2 == 1)
    for number in 1...300 {
      var (video, audio) = (try SyntheticMedia.video(), try SyntheticMedia.audio())
      video.id = TrackID(.video, number)
      audio.id = TrackID(.audio, number)
      #expect(video.number == number && audio.number == number)
      // An ID of the other kind has no number of its own.
      (video.id, audio.id) = (audio.id, video.id)
      #expect(video.number == 1 && audio.number == 1)
    }
  }
}
