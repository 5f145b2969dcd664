internal import Basics
internal import FMP4
internal import Glibc
internal import HTTP
internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
internal import UnixSignals

/// The server, assembled from its parts: first its members, then start and stop.
struct WeirServer {
  let configuration: ServerConfiguration
  let logger: Logger
  let clock: SteadyClock
  private let recordings: RecordingLibrary?
  private let archive: RecordingArchive
  let streams: StreamRegistry
  let descriptors: DescriptorBudget
  private let media: WindowBudget
  private let stateStore: StreamStateStore?
  private let events: EventLog
  private let hooks: Hooks
  private let inherited: InheritedSockets
  private let protocols: @Sendable (WeirServer) -> [PublisherProtocol]

  /// `protocols` are those for publishers.
  init(
    configuration: ServerConfiguration, inherited: InheritedSockets = .none, logger: Logger,
    protocols: @escaping @Sendable (WeirServer) -> [PublisherProtocol] = PublisherProtocol.all
  ) {
    self.protocols = protocols
    DescriptorLimit.raise()
    descriptors = DescriptorBudget()
    media = WindowBudget(perStream: configuration.streamMemory, inAll: configuration.mediaMemory)
    self.inherited = inherited
    self.configuration = configuration
    self.logger = logger
    let clock = SteadyClock.system()
    self.clock = clock
    let disk = NIOSingletons.posixBlockingThreadPool
    let files = OpenRecordings(descriptors: descriptors)
    let profiles = configuration.streams
    let archive = RecordingArchive(
      folder: configuration.recordingsFolder, rewind: { profiles[$0].settings.rewind },
      publicURL: configuration.publicURL, files: files)
    self.archive = archive
    let library = configuration.recordingsFolder.map { folder in
      RecordingLibrary(
        folder: folder, keepFree: configuration.keepFree, policy: { profiles[$0].recording },
        retention: configuration.retention, threads: disk, archive: archive, files: files, logger: logger)
    }
    recordings = library
    let buffers =
      configuration.canRewind
      ? TimeShiftBuffers(
        folder: configuration.recordingsFolder ?? "/var/tmp", keepFree: configuration.keepFree, archive: archive,
        logger: logger)
      : nil
    let segments = configuration.segmentsFolder.map { folder in
      (folder: folder, thread: NIOThreadPool(numberOfThreads: 1))
    }
    segments?.thread.start()
    let events = EventLog(clock: clock, logger: logger)
    self.events = events
    hooks = Hooks(
      configuration.hooks, log: events, recordings: configuration.recordingsFolder, clock: clock, logger: logger)
    stateStore = configuration.stateFolder.map { StreamStateStore(folder: $0, clock: clock, logger: logger) }
    streams = StreamRegistry(
      settings: { profiles[$0].settings },
      publishKeys: configuration.publishKeys, names: configuration.nameLimits, descriptors: descriptors,
      memory: media, sinksPerStream: configuration.sinksPerStream, clock: clock, logger: logger, stateStore: stateStore,
      events: events
    ) { stream, epoch, requested in
      let rewinds = profiles[stream].settings.rewind != nil
      var sinks: [any FragmentSink] =
        rewinds ? [RewindRetention(stream: stream, epoch: epoch, archive: archive)] : []
      if requested == .asConfigured, let recorder = library?.makeRecorder(stream: stream, epoch: epoch) {
        sinks.append(recorder)
      } else if rewinds, let buffers {
        sinks.append(buffers.make(stream, epoch: epoch))
      }
      if let segments {
        sinks.append(SegmentFolder(stream: stream, folder: segments.folder, thread: segments.thread, logger: logger))
      }
      return sinks
    }
    library?.follow(streams, buffers: buffers)
    library?.tell(events)
  }

  /// Listens, serves until SIGTERM or SIGINT, then ends everything in order. Throws `ConfigurationError` if this machine prevents
  /// the start.
  ///
  /// - Parameter openingPage: whether the first source's page is opened in a browser, if there is a desktop.
  func run(openingPage: Bool = false) async throws {
    // Without this, a file at the size limit ends the server instead of being an error of its recording (EFBIG).
    signal(SIGXFSZ, SIG_IGN)
    await resumeEvents()
    await resumeStreams()
    await recordings?.finishLeftovers(patience: Self.leftoverPatience)
    let protocols = protocols(self)
    let certificate = try readCertificate(for: protocols)
    if let folder = configuration.segmentsFolder {
      try? await NIOSingletons.posixBlockingThreadPool.runIfActive { [logger] in
        SegmentSweep.run(folder: folder, logger: logger)
      }
    }
    let endpoints = try await listen(by: protocols, tls: certificate?.rtmps)
    let memory = MemoryBudget(logger: logger)
    let sources = LocalSources(configuration.sources.map(makeSource))
    if configuration.sourcesBegin == .offAir { for source in sources.all { source.preview() } }
    let rtmp = endpoints.first { $0.setting == "rtmp" }
    let http = makeHTTPListener(protocols, rtmpPort: rtmp?.address.port, memory: memory, sources: sources)
    let pages = try await listenHTTP(http, tls: certificate?.https)
    descriptors.onShortage { count in http.shedSoon(count) }
    let report = StartupReport(
      configuration: configuration, capacity: capacity, http: pages.http, https: pages.https, endpoints: endpoints)
    let running = RunningServer(
      report: report, streams: streams, recordings: recordings, clock: clock, publishers: protocols.map(\.listener),
      http: http, sources: sources, certificate: certificate, memory: memory, stateStore: stateStore, events: events,
      hooks: hooks,
      opensPage: openingPage,
      logger: logger)
    let services = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [.init(service: running)], gracefulShutdownSignals: [.sigterm, .sigint],
        logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }))
    try await services.run()
    logger.notice("stopped")
  }

  /// Most leftovers are finished within milliseconds, so the first client finds them.
  private static let leftoverPatience = Duration.milliseconds(500)

  /// Continues the log of events of the previous process.
  private func resumeEvents() async {
    defer { hooks.begin() }
    guard let folder = configuration.stateFolder else { return }
    do {
      try await NIOSingletons.posixBlockingThreadPool.runIfActive { [events] in try events.begin(folder: folder) }
    } catch {
      logger.warning("events end with this process, their log in \(folder) cannot be opened: \(error)")
    }
  }

  /// Continues the streams of the previous process. If their state cannot be read, they begin anew.
  private func resumeStreams() async {
    guard let stateStore else { return }
    do {
      let patience = configuration.streams.all.map(\.settings.reconnectWindow).max() ?? MediaTime(milliseconds: 0)
      streams.resume(
        try await NIOSingletons.posixBlockingThreadPool.runIfActive { try stateStore.begin(patience: patience) })
    } catch {
      logger.warning("streams begin anew, their state cannot be read: \(error)")
      streams.resume([:])
    }
  }

  private func makeSource(_ source: SourceSpecification) -> LocalSource {
    let (name, streams, clock, logger) = (source.name, streams, clock, logger)
    switch source.kind {
    case .test:
      let settings = TestSourceSettings.demo(
        segmentDuration: .seconds(configuration.streams[name].settings.segmentTarget.seconds))
      return LocalSource(name: name, kind: "test", recording: .never, gate: streams) { _, gate in
        TestSource(name: name, settings: settings, gate: gate, clock: clock, logger: logger)
      }
    case .file(let path):
      return LocalSource(name: name, kind: "file", gate: streams) { _, gate in
        FileSource(name: name, path: path, gate: gate, clock: clock, logger: logger)
      }
    case .capture(let given):
      return LocalSource(name: name, kind: "capture", gate: streams) { last, gate in
        CaptureSource(name: name, settings: last ?? given, gate: gate, clock: clock, logger: logger)
      }
    }
  }

  private var sourceRecordings: SourceRecordings? {
    recordings.map { [profiles = configuration.streams] in
      SourceRecordings(library: $0, settings: { profiles[$0].settings }, logger: logger)
    }
  }

  // MARK: Listeners

  private var capacity: ServerCapacity {
    ServerCapacity(
      streams: configuration.streams.all.map { streams.capacity(of: $0.settings) }.min() ?? 0,
      connections: min(configuration.httpLimits.connections, descriptors.viewers),
      descriptors: descriptors.limit, mediaBytes: media.inAll, mediaBytesPerStream: media.perStream)
  }

  private static func thread() -> NIOThreadPool {
    let pool = NIOThreadPool(numberOfThreads: 1)
    pool.start()
    return pool
  }

  private func makeHTTPListener(
    _ protocols: [PublisherProtocol], rtmpPort: Int?, memory: MemoryBudget, sources: LocalSources
  ) -> HTTPListener {
    let attempts = AdminAttempts(clock: clock, events: events, logger: logger)
    let gate = AdminGate(token: configuration.adminToken, attempts: attempts)
    let viewers = ViewerRegistry(limit: configuration.maxViewers, clock: clock, events: events)
    let traffic = HTTPTraffic()
    let metrics = MetricsReport(
      streams: streams, viewers: viewers, recordings: recordings, sources: sources, traffic: traffic,
      capacity: capacity,
      attempts: attempts
    ) { ConnectionRefusals(sumOf: protocols.map(\.listener.refusals)) }
    // Three threads, which end with the process. Two wait for thumbnail workers: one for live streams, one for recordings, so
    // that a gallery of recordings does not delay live streams. The third makes reports and lists, since an event loop must not,
    // and a disk thread may be blocked.
    let (liveThumbnails, recordingThumbnails, reports) = (Self.thread(), Self.thread(), Self.thread())
    let replay = ReplayRoutes(
      archive: archive, streams: streams,
      layout: { [profiles = configuration.streams] in profiles[$0].settings.layout },
      longClips: LongClips(memory: memory))
    let router = Router(
      live: LiveRoutes(
        streams: streams, viewers: viewers, thumbnails: Thumbnails(logger: logger, pool: liveThumbnails),
        archive: archive),
      api: APIRoutes(
        streams: streams, viewers: viewers, recordings: recordings, captures: CaptureAPI(sources: sources),
        sources: SourcesAPI(
          sources: sources, previews: SourcePreviews(pool: liveThumbnails), recordings: sourceRecordings),
        replay: replay, events: EventsAPI(log: events, hooks: hooks), gate: gate, clock: clock, rtmpPort: rtmpPort,
        publishKeyRequired: !configuration.publishKeys.isEmpty, publicURL: configuration.publicURL,
        capacity: capacity, lists: SingleFlight(limit: 1, on: reports, sharing: .untilBegun)),
      recordings: RecordingRoutes(
        library: recordings,
        thumbnails: recordings.map { RecordingThumbnails(library: $0, logger: logger, pool: recordingThumbnails) }),
      replay: replay,
      pages: PageRoutes(files: WebFiles(folder: configuration.webFolder)),
      metrics: MetricsRoutes(report: metrics, clock: clock, pool: reports), gate: gate)
    let listener = HTTPListener(
      responder: router, limits: configuration.httpLimits, memory: memory, descriptors: descriptors,
      proxies: configuration.trustedProxies, origins: configuration.crossOrigin, clock: clock, traffic: traffic,
      logger: logger)
    if listener.capacity < configuration.maxViewers {
      logger.warning(
        """
        --max-viewers is \(configuration.maxViewers), but this system allows weir \(listener.capacity) connections; raise the \
        limit of open files (ulimit -n, or LimitNOFILE of systemd)
        """)
    }
    return listener
  }

  private func listenHTTP(
    _ http: HTTPListener, tls: TLSContextSource?
  ) async throws -> (http: SocketAddress, https: SocketAddress?) {
    let plain = try await bind(configuration.http, "http") { place in try await http.start(place) }
    guard let address = configuration.https, let tls else { return (plain, nil) }
    let secure = try await bind(address, "https") { place in try await http.start(place, tls: tls) }
    return (plain, secure)
  }

  /// Listens at an address, or on the socket that was passed to this process.
  private func bind(
    _ address: ListenAddress, _ setting: SettingName, _ start: (ListenEndpoint) async throws -> SocketAddress
  ) async throws -> SocketAddress {
    if let socket = inherited[setting] { return try await start(.socket(socket)) }
    return try await address.bind(for: setting) { host, port in
      try await start(.address(try SocketAddress(ipAddress: host, port: port)))
    }
  }

  private func listen(
    by protocols: [PublisherProtocol], tls: TLSContextSource?
  ) async throws -> [PublisherProtocol.Endpoint] {
    var endpoints: [PublisherProtocol.Endpoint] = []
    for each in protocols {
      for place in each.places {
        let address = try await bind(place.address, place.setting) {
          try await each.listener.start($0, tls: place.isSecure ? tls : nil)
        }
        endpoints.append(PublisherProtocol.Endpoint(setting: place.setting, address: address, of: each))
      }
    }
    return endpoints
  }

  /// Nil if nothing is served over TLS.
  private func readCertificate(
    for protocols: [PublisherProtocol]
  ) throws(ConfigurationError) -> ServerCertificate? {
    guard configuration.https != nil || protocols.contains(where: { $0.places.contains(where: \.isSecure) }) else {
      return nil
    }
    guard let files = configuration.tls else {
      throw ConfigurationError(.usage, "TLS needs a certificate: give --tls-cert and --tls-key")
    }
    do throws(TLSFilesError) {
      return try ServerCertificate(files: files, minimumVersion: configuration.minimumTLS, logger: logger)
    } catch {
      throw ConfigurationError(.configuration, error.description)
    }
  }
}
