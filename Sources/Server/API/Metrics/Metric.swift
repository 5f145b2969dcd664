/// The metrics of `/metrics`, in the order of output. The raw value is the name: base units (seconds, bytes), counters end in
/// `_total` (prometheus.io, "Metric and label naming"). docs/metrics.md explains each of them.
enum Metric: String, CaseIterable, Sendable {
  case build = "weir_build_info"
  case renderTime = "weir_metrics_render_seconds"
  case streams = "weir_streams"
  case publishRejected = "weir_publish_rejected_total"
  case streamCapacity = "weir_streams_capacity"
  case mediaMemory = "weir_media_memory_bytes"
  case mediaMemoryCapacity = "weir_media_memory_capacity_bytes"
  case connectionCapacity = "weir_http_connections_capacity"
  case connections = "weir_http_connections"
  case connectionsRefused = "weir_http_connections_refused_total"
  case viewersRefused = "weir_viewers_refused_total"
  case viewersCut = "weir_viewers_cut_total"
  case adminRejected = "weir_admin_rejected_total"
  case viewerTokensRejected = "weir_viewer_tokens_rejected_total"
  case egress = "weir_egress_bytes_total"

  case live = "weir_stream_live"
  case started = "weir_stream_start_time_seconds"
  case rate = "weir_stream_bytes_per_second"
  case memory = "weir_stream_memory_bytes"
  case warnings = "weir_stream_warnings"
  case keyFrameInterval = "weir_keyframe_interval_seconds"
  case skew = "weir_av_skew_seconds"
  case publications = "weir_ingest_publications_total"
  case ingestBytes = "weir_ingest_bytes_total"
  case ingestFrames = "weir_ingest_frames_total"
  case ingestKeyFrames = "weir_ingest_keyframes_total"
  case ingestLost = "weir_ingest_frames_lost_total"
  case mendedTimes = "weir_ingest_timestamps_mended_total"
  case audioCorrections = "weir_ingest_audio_corrections_total"
  case jumps = "weir_ingest_timestamp_jumps_total"
  case linkRoundTrip = "weir_srt_rtt_seconds"
  case linkBuffered = "weir_srt_buffer_seconds"
  case linkBandwidth = "weir_srt_bandwidth_bytes_per_second"
  case linkReceived = "weir_srt_packets_total"
  case linkLost = "weir_srt_packets_lost_total"
  case linkRetransmitted = "weir_srt_packets_retransmitted_total"
  case linkDropped = "weir_srt_packets_dropped_total"
  case partDelay = "weir_part_delay_seconds"
  case shortParts = "weir_parts_short_total"
  case blockedReload = "weir_blocked_reload_seconds"
  case renders = "weir_playlist_renders_total"
  case viewers = "weir_viewers"

  case ladderRungs = "weir_ladder_renditions"
  case ladderWorker = "weir_ladder_worker_up"
  case ladderRestarts = "weir_ladder_worker_restarts_total"
  case ladderDropped = "weir_ladder_frames_dropped_total"
  case audioWorker = "weir_audio_worker_up"
  case audioRestarts = "weir_audio_worker_restarts_total"

  case cameraUp = "weir_camera_up"
  case cameraTaken = "weir_camera_frames_total"
  case cameraLost = "weir_camera_frames_lost_total"
  case cameraBroken = "weir_camera_frames_corrupt_total"
  case leftOut = "weir_encoder_frames_dropped_total"
  case coded = "weir_encoder_frames_total"
  case encodeTime = "weir_encoder_frame_seconds"
  case encoderRestarts = "weir_encoder_restarts_total"
  case microphoneUp = "weir_microphone_up"
  case overruns = "weir_microphone_overruns_total"
  case bridged = "weir_microphone_bridged_samples_total"
  case microphoneSkew = "weir_microphone_skew_seconds"

  case recordingRunning = "weir_recording_running"
  case recordingFailed = "weir_recording_failed"
  case recordingBytes = "weir_recording_file_bytes"
  case recordingLag = "weir_recording_lag_seconds"
  case recordingUnsynced = "weir_recording_unsynced_bytes"
  case recordingGaps = "weir_recording_gap_seconds"
  case recordingQueue = "weir_recording_queued_bytes"
  case recordings = "weir_recordings_total"
  case recordingLost = "weir_recording_lost_seconds_total"
  case finalize = "weir_recording_finalize_seconds"
  case diskFree = "weir_disk_free_bytes"
  case diskKeepFree = "weir_disk_keep_free_bytes"
  case diskAge = "weir_disk_look_age_seconds"

  case processCPU = "process_cpu_seconds_total"
  case processResident = "process_resident_memory_bytes"
  case processVirtual = "process_virtual_memory_bytes"
  case processDescriptors = "process_open_fds"
  case processDescriptorLimit = "process_max_fds"
  case processStart = "process_start_time_seconds"

  /// As in the `# TYPE` line.
  enum Kind: String, Sendable {
    /// Only increases until the server restarts.
    case counter
    case gauge
    /// A number of events and their total duration: two series, `_count` and `_sum`.
    case summary
  }

  var kind: Kind {
    switch self {
    case .partDelay, .blockedReload, .finalize: .summary
    default: rawValue.hasSuffix("_total") ? .counter : .gauge
    }
  }

  /// How the values of several streams are combined into one.
  enum Merging: Sendable {
    case sum
    case maximum
    /// The values cannot be combined.
    case none
  }

  var merging: Merging {
    switch self {
    case .recordingLag, .encodeTime, .linkRoundTrip, .linkBuffered: .maximum
    case .started, .keyFrameInterval, .skew, .microphoneSkew: .none
    default: .sum
    }
  }
}
