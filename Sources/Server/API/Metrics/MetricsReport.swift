internal import Base
package import Control
internal import FMP4
package import HTTP
internal import Local
package import LocalSources
internal import NIOCore
package import Publishing
package import Recording
internal import RecordingFiles
package import Streams
internal import Transcode

/// Gathers the figures of `/metrics` when they are requested. It only reads counters that streams, viewers, recordings, sources
/// and connections keep anyway. The API reports the same figures of a stream.
package struct MetricsReport: Sendable {
  let streams: StreamRegistry
  let viewers: ViewerRegistry
  let recordings: RecordingLibrary?
  let sources: SourceRegistry
  let traffic: HTTPTraffic
  let capacity: @Sendable () -> ServerCapacity
  var attempts = AdminAttempts()
  var viewerAttempts = AdminAttempts(of: .viewers)
  /// Publisher connections that were closed before any data was read, or had to wait.
  let refusals: @Sendable () -> ConnectionRefusals

  package init(
    streams: StreamRegistry, viewers: ViewerRegistry, recordings: RecordingLibrary?, sources: SourceRegistry,
    traffic: HTTPTraffic, capacity: @escaping @Sendable () -> ServerCapacity, attempts: AdminAttempts = AdminAttempts(),
    viewerAttempts: AdminAttempts = AdminAttempts(of: .viewers), refusals: @escaping @Sendable () -> ConnectionRefusals
  ) {
    (self.streams, self.viewers, self.recordings, self.sources, self.traffic) = (
      streams, viewers, recordings, sources, traffic
    )
    (self.capacity, self.attempts, self.viewerAttempts, self.refusals) = (capacity, attempts, viewerAttempts, refusals)
  }

  /// `renderTime`: nanoseconds that the previous report took; nil for the first.
  func sheet(renderTime: Int64?) -> MetricSheet {
    var sheet = MetricSheet()
    sheet.add(.build, 1, [("version", Version.number)])
    if let renderTime { sheet.add(.renderTime, Double(renderTime) / 1_000_000_000) }
    let overview = streams.overview
    let audience = viewers.counts
    add(of: overview, audience.streams, &sheet)
    addServer(overview, refusedViewers: audience.refused, displacedViewers: audience.displaced, &sheet)
    addSources(overview, &sheet)
    if let recordings { add(of: recordings.overview, overview, keepFree: recordings.keepFree, &sheet) }
    add(of: ProcessFigures.read(), &sheet)
    return sheet
  }

  // MARK: The server

  private func addServer(
    _ overview: StreamRegistry.Overview, refusedViewers: Int, displacedViewers: Int, _ sheet: inout MetricSheet
  ) {
    for (reason, count) in rejections(overview) { sheet.add(.publishRejected, count, [("reason", reason)]) }
    let capacity = capacity()
    sheet.add(.streamCapacity, capacity.streams)
    sheet.add(.mediaMemory, streams.mediaBytes)
    sheet.add(.mediaMemoryCapacity, capacity.mediaBytes)
    sheet.add(.connectionCapacity, capacity.connections)
    sheet.add(.connections, traffic[.openConnections])
    sheet.add(.connectionsRefused, traffic[.refusedConnections], [("reason", "full")])
    sheet.add(.connectionsRefused, traffic[.droppedConnections], [("reason", "dropped")])
    sheet.add(.viewersRefused, refusedViewers, [("reason", "full")])
    sheet.add(.viewersRefused, traffic[.refusedPolls], [("reason", "polls")])
    sheet.add(.viewersRefused, displacedViewers, [("reason", "displaced")])
    sheet.add(.viewersCut, traffic[.slowViewers], [("reason", "slow")])
    sheet.add(.viewersCut, traffic[.lateViewers], [("reason", "memory")])
    sheet.add(.viewersCut, traffic[.shedViewers], [("reason", "descriptors")])
    sheet.add(.viewersCut, traffic[.displacedConnections], [("reason", "full")])
    let attempts = attempts.counts
    sheet.add(.adminRejected, attempts.wrong, [("reason", "wrong")])
    sheet.add(.adminRejected, attempts.refused, [("reason", "slowed")])
    let ofViewers = viewerAttempts.counts
    sheet.add(.viewerTokensRejected, ofViewers.wrong, [("reason", "wrong")])
    sheet.add(.viewerTokensRejected, ofViewers.refused, [("reason", "slowed")])
    sheet.add(.egress, traffic[.http1Bytes], [("version", "1.1")])
    sheet.add(.egress, traffic[.http2Bytes], [("version", "2")])
  }

  /// Rejected publications by reason, sorted. Every reason is reported, also with a count of 0: an alert on an increase does not
  /// see a series that begins with 1.
  private func rejections(_ overview: StreamRegistry.Overview) -> [(reason: String, count: Int)] {
    let connections = refusals()
    var counts = [
      "unauthorized": 0, "busy": 0, "takeovers": 0, "breaks": 0, "names": 0, "streams": 0, "room": 0, "shutdown": 0,
      "slowed": 0, "address": 0,
    ]
    counts.merge(overview.rejections) { $1 }
    counts["slowed", default: 0] += connections.slowed
    counts["crowded"] = connections.tooManyUnauthenticated
    return counts.sorted { $0.key < $1.key }.map { (reason: $0.key, count: $0.value) }
  }

  private func add(of process: ProcessFigures, _ sheet: inout MetricSheet) {
    if let value = process.cpuSeconds { sheet.add(.processCPU, value) }
    if let value = process.residentBytes { sheet.add(.processResident, value) }
    if let value = process.virtualBytes { sheet.add(.processVirtual, value) }
    if let value = process.openDescriptors { sheet.add(.processDescriptors, value) }
    if let value = process.descriptorLimit { sheet.add(.processDescriptorLimit, value) }
    if let value = process.startSeconds { sheet.add(.processStart, value) }
  }

  // MARK: Streams

  private func add(
    of overview: StreamRegistry.Overview, _ audience: [StreamName: [ViewerProtocol?: Int]], _ sheet: inout MetricSheet
  ) {
    var phases: [StreamPhase: Int] = [:]
    for stream in overview.streams {
      let status = stream.status
      phases[status.phase, default: 0] += 1
      let subject = overview.subject(of: status.name)
      add(of: status, subject, &sheet)
      add(of: status.counters, subject, &sheet)
      add(of: audience[status.name] ?? [:], subject, &sheet)
    }
    if overview.departed.publications > 0 { add(of: overview.departed, .other, &sheet) }
    for phase in StreamPhase.allCases {
      sheet.add(.streams, phases[phase] ?? 0, [("state", phase.rawValue)])
    }
  }

  private func add(of status: StreamStatus, _ subject: MetricSheet.Subject, _ sheet: inout MetricSheet) {
    sheet.add(.live, status.phase == .live, of: subject)
    sheet.add(.started, Double(status.startedAt.nanoseconds) / 1_000_000_000, of: subject)
    sheet.add(.rate, Double(status.bitrate) / 8, of: subject)
    sheet.add(.memory, status.residentBytes, of: subject)
    sheet.add(.warnings, status.warnings.count, of: subject)
    if let group = status.longestGroup { sheet.add(.keyFrameInterval, group.seconds, of: subject) }
    if let skew = status.skew { sheet.add(.skew, skew, of: subject) }
    if let link = status.link {
      sheet.add(.linkRoundTrip, Double(link.roundTrip) / 1_000_000, of: subject)
      sheet.add(.linkBuffered, Double(link.buffered) / 1000, of: subject)
      sheet.add(.linkBandwidth, Double(link.bandwidth) / 8, of: subject)
    }
    if let transcoding = status.transcoding {
      sheet.add(.ladderRungs, status.rungs.count, of: subject)
      sheet.add(.ladderWorker, transcoding.worker == .running, of: subject)
    }
    if let transcoding = status.audioTranscoding {
      sheet.add(.audioWorker, transcoding.worker == .running, of: subject)
    }
    if status.audioTranscoding != nil || status.counters.audioRestarts > 0 {
      sheet.add(.audioRestarts, status.counters.audioRestarts, of: subject)
    }
    if status.transcoding != nil || status.counters.workerRestarts > 0 || status.counters.droppedFrames > 0 {
      sheet.add(.ladderRestarts, status.counters.workerRestarts, of: subject)
      sheet.add(.ladderDropped, status.counters.droppedFrames, of: subject)
    }
  }

  private func add(of counters: StreamCounters, _ subject: MetricSheet.Subject, _ sheet: inout MetricSheet) {
    sheet.add(.publications, counters.publications, of: subject)
    for (protocolName, intake) in counters.intakes {
      let label = (name: "protocol", value: protocolName)
      let (video, audio) = ((name: "kind", value: "video"), (name: "kind", value: "audio"))
      sheet.add(.ingestBytes, intake.bytes, of: subject, [label])
      sheet.add(.ingestFrames, intake.frames, of: subject, [label, video])
      sheet.add(.ingestFrames, intake.audioFrames, of: subject, [label, audio])
      sheet.add(.ingestKeyFrames, intake.keyFrames, of: subject, [label])
      sheet.add(.ingestLost, intake.lostFrames, of: subject, [label, video])
      sheet.add(.ingestLost, intake.lostAudioFrames, of: subject, [label, audio])
      sheet.add(.mendedTimes, intake.mendedFrames, of: subject, [label, video])
      sheet.add(.mendedTimes, intake.mendedAudioFrames, of: subject, [label, audio])
      // Rare, and a series for each stream.
      if intake.audioCorrections > 0 { sheet.add(.audioCorrections, intake.audioCorrections, of: subject, [label]) }
      sheet.add(.jumps, intake.jumps, of: subject, [label])
    }
    if counters.link.received > 0 {
      sheet.add(.linkReceived, counters.link.received, of: subject)
      sheet.add(.linkLost, counters.link.lost, of: subject)
      sheet.add(.linkRetransmitted, counters.link.retransmitted, of: subject)
      sheet.add(.linkDropped, counters.link.dropped, of: subject)
    }
    sheet.add(.partDelay, counters.partDelay, of: subject)
    sheet.add(.shortParts, counters.shortParts.count, of: subject)
    sheet.add(.blockedReload, counters.waits, of: subject)
    sheet.add(.renders, counters.playlistRenders, of: subject)
  }

  private func add(of audience: [ViewerProtocol?: Int], _ subject: MetricSheet.Subject, _ sheet: inout MetricSheet) {
    for delivery in ViewerProtocol.allCases {
      sheet.add(.viewers, audience[delivery] ?? 0, of: subject, [("protocol", delivery.rawValue)])
    }
    if let undecided = audience[nil] { sheet.add(.viewers, undecided, of: subject, [("protocol", "unknown")]) }
  }

  // MARK: Sources

  private func addSources(_ overview: StreamRegistry.Overview, _ sheet: inout MetricSheet) {
    for source in sources.all {
      guard let status = source.status else { continue }
      let subject = overview.subject(of: source.name)
      if let video = status.video { add(of: video, subject, &sheet) }
      if let audio = status.audio {
        sheet.add(.microphoneUp, audio.state == .running, of: subject)
        sheet.add(.overruns, audio.overruns, of: subject)
        sheet.add(.bridged, audio.bridgedSamples, of: subject)
        sheet.add(.microphoneSkew, Double(audio.skewMicroseconds) / 1_000_000, of: subject)
      }
    }
  }

  private func add(
    of video: CaptureStatus.Video, _ subject: MetricSheet.Subject, _ sheet: inout MetricSheet
  ) {
    sheet.add(.cameraUp, video.state == .running, of: subject)
    sheet.add(.cameraTaken, video.taken, of: subject)
    sheet.add(.cameraLost, video.lostByDriver, of: subject)
    sheet.add(.cameraBroken, video.broken, of: subject)
    sheet.add(.leftOut, video.leftOut, of: subject)
    sheet.add(.coded, video.coded, of: subject)
    sheet.add(.encodeTime, Double(video.encodeMicroseconds) / 1_000_000, of: subject)
    sheet.add(.encoderRestarts, video.encoderRestarts, of: subject)
  }

  // MARK: Recordings

  private func add(
    of recordings: RecordingLibrary.Overview, _ overview: StreamRegistry.Overview, keepFree: Int64,
    _ sheet: inout MetricSheet
  ) {
    for stream in overview.streams {
      guard let recorder = recordings.recorders[stream.name] else { continue }
      add(of: recorder, overview.subject(of: stream.name), &sheet)
    }
    sheet.add(.recordingQueue, recordings.queuedBytes)
    for (event, count) in recordings.counters.events.sorted(by: { $0.key < $1.key }) {
      sheet.add(.recordings, count, [("event", event)])
    }
    for cause in RecordingCounters.Cause.allCases {
      sheet.add(.recordingLost, recordings.counters.lost[cause] ?? 0, [("cause", cause.rawValue)])
    }
    for (way, durations) in recordings.counters.finishing.sorted(by: { $0.key < $1.key }) {
      sheet.add(.finalize, durations, [("way", way)])
    }
    sheet.add(.diskKeepFree, keepFree)
    if let disk = recordings.disk {
      sheet.add(.diskFree, disk.freeBytes)
      sheet.add(.diskAge, Double(disk.age) / 1_000_000_000)
    }
  }

  private func add(of recorder: Recorder, _ subject: MetricSheet.Subject, _ sheet: inout MetricSheet) {
    let state = recorder.state
    var progress: RecordingProgress?
    var (isRunning, hasFailed) = (false, false)
    switch state {
    case .idle, .cancelled: break
    case .running(let known): (progress, isRunning) = (known, true)
    case .completed(let known): progress = known
    case .failed(let known, _): (progress, hasFailed) = (known, true)
    }
    sheet.add(.recordingRunning, isRunning, of: subject)
    sheet.add(.recordingFailed, hasFailed, of: subject)
    sheet.add(.recordingBytes, progress?.bytes ?? 0, of: subject)
    sheet.add(.recordingLag, Double(recorder.lag) / 1_000_000_000, of: subject)
    sheet.add(.recordingUnsynced, isRunning ? progress?.unsyncedBytes ?? 0 : 0, of: subject)
    sheet.add(.recordingGaps, progress?.gaps.reduce(0) { $0 + $1.seconds } ?? 0, of: subject)
  }
}

extension StreamRegistry.Overview {
  /// Whose series a stream's figures belong to. Only a bounded number of streams (`named`) have series of their own. All others,
  /// and local sources that are not published yet, share one.
  func subject(of name: StreamName) -> MetricSheet.Subject {
    named.contains(name) ? .stream(name.description) : .other
  }
}
