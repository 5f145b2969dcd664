internal import API
internal import Base
internal import Control
internal import Delivery
internal import FMP4
internal import Glibc
internal import HTTP
internal import Local
internal import LocalSources
internal import Logging
internal import MPEGTS
internal import NIOCore
internal import NIOPosix
internal import Publishing
internal import Recording
internal import RecordingFiles
internal import ServiceLifecycle
internal import Settings
internal import Streams
internal import Transcode
internal import UnixSignals
internal import WebRTC

/// The server, assembled from its parts: first its members, then start and stop.
struct WeirServer {
  let configuration: ServerConfiguration
  let logger: Logger
  let clock: SteadyClock
  let recordings: RecordingLibrary?
  private let archive: RecordingArchive
  let streams: StreamRegistry
  let descriptors: DescriptorBudget
  /// For the workers that media ask for.
  private let workers: WorkerRoom
  /// Of the sources that receive datagrams.
  private let datagramSockets = DatagramSockets()
  private let threads: ServerThreads
  let viewers: ViewerRegistry
  let media: WindowBudget
  private let stateStore: StreamStateStore?
  let events: EventLog
  /// Woken by what begins, so that an idle server may sleep.
  let waker = Waker()
  private let fallbacks: Fallbacks
  let hooks: Hooks
  let inherited: InheritedSockets
  private let protocols: @Sendable (WeirServer) -> [PublisherProtocol]
  let authorizer: Authorizer
  /// The settings of streams, which change while the server runs.
  let profiles: Reloadable<StreamProfiles>
  /// Changes with `profiles`, after them.
  let viewersRules = Generation()
  /// How long a cache may go by what it was told of a token, in seconds.
  let recheck: Reloadable<Int64>
  let capacity = Reloadable(ServerCapacity.none)
  /// The origins whose pages may embed the player.
  let embedFrom: Reloadable<[String]>
  /// The origins whose pages may publish, beside the server's own.
  let origins: Reloadable<CrossOrigin>
  /// Where the configuration came from; nil if it cannot be read again.
  let sources: SettingSources?
  let setLogLevel: @Sendable (Logger.Level) -> Void

  /// `protocols` are those for publishers. `sources` are those that `configuration` was made of.
  init(
    configuration: ServerConfiguration, from sources: SettingSources? = nil, inherited: InheritedSockets = .none,
    logger: Logger, setLogLevel: @escaping @Sendable (Logger.Level) -> Void = { _ in },
    protocols: @escaping @Sendable (WeirServer) -> [PublisherProtocol] = PublisherProtocol.all
  ) {
    self.protocols = protocols
    descriptors = DescriptorBudget()
    workers = descriptors.makeWorkerRoom()
    HostNames.system.descriptors.now = descriptors
    media = WindowBudget(perStream: configuration.streamMemory, inAll: configuration.mediaMemory)
    self.inherited = inherited
    self.configuration = configuration
    (self.sources, self.setLogLevel) = (sources, setLogLevel)
    self.logger = logger
    let clock = SteadyClock.system()
    self.clock = clock
    let disk = NIOSingletons.posixBlockingThreadPool
    let files = OpenRecordings(descriptors: descriptors)
    let profiles = Reloadable(configuration.streams)
    self.profiles = profiles
    recheck = Reloadable(configuration.recheckSeconds)
    embedFrom = Reloadable(configuration.embedFrom)
    origins = Reloadable(configuration.crossOrigin)
    let authorizer = Authorizer(configuration.accessRules, clock: clock, logger: logger)
    self.authorizer = authorizer
    let threads = ServerThreads(
      records: configuration.recordingsFolder != nil, writesSegments: configuration.segmentsFolder != nil)
    self.threads = threads
    let events = EventLog(clock: clock, thread: threads.events, waker: waker, logger: logger)
    self.events = events
    viewers = ViewerRegistry(limit: configuration.maxViewers, clock: clock, events: events)
    let archive = RecordingArchive(
      folder: configuration.recordingsFolder,
      rewind: { profiles.now[$0].settings.rewind },
      publicURL: configuration.publicURL, files: files, threads: threads.reading)
    self.archive = archive
    let library = configuration.recordingsFolder.map { folder in
      RecordingLibrary(
        folder: folder, keepFree: configuration.keepFree, policy: { profiles.now[$0].recording },
        retention: configuration.retention, threads: disk, queues: threads.recordings ?? RecordingQueues(),
        archive: archive, files: files, logger: logger)
    }
    recordings = library
    let buffers = TimeShiftBuffers(
      folder: configuration.recordingsFolder ?? "/var/tmp", keepFree: configuration.keepFree, archive: archive,
      threads: threads.rewinding, logger: logger)
    let segmentsFolder = configuration.segmentsFolder
    hooks = Hooks(
      configuration.hooks, log: events, recordings: configuration.recordingsFolder, clock: clock, logger: logger)
    stateStore = configuration.stateFolder.map {
      StreamStateStore(folder: $0, clock: clock, thread: threads.streamState, logger: logger)
    }
    streams = StreamRegistry(
      settings: { profiles.now[$0].settings },
      authorizer: authorizer, names: configuration.nameLimits, descriptors: descriptors,
      memory: media, room: workers, sinksPerStream: configuration.sinksPerStream, clock: clock, logger: logger,
      stateStore: stateStore, events: events, waker: waker
    ) { stream, epoch, requested, isNew in
      let rewinds = profiles.now[stream].settings.rewind != nil
      // A recording that was started by hand may wait for this publication.
      let isRecorded = library?.isRecording(stream) == true
      let recorder =
        requested == .asConfigured && !isRecorded ? library?.makeRecorder(stream: stream, epoch: epoch) : nil
      guard isNew else { return recorder.map { [$0] } ?? [] }
      var sinks: [any FragmentSink] =
        rewinds ? [RewindRetention(stream: stream, epoch: epoch, archive: archive)] : []
      if let recorder { sinks.append(recorder) }
      // Viewers go back in a recording of all tracks, else in a buffer.
      if rewinds, recorder == nil || profiles.now[stream].recording.tracks != .all {
        sinks.append(buffers.make(stream, epoch: epoch))
      }
      if let segmentsFolder, let thread = threads.segments {
        sinks.append(SegmentFolder(stream: stream, folder: segmentsFolder, thread: thread, logger: logger))
      }
      return sinks
    }
    fallbacks = Fallbacks(
      streams: streams, segmentTarget: { profiles.now[$0].settings.segmentTarget }, clock: clock, logger: logger)
    streams.use(fallbacks)
    library?.follow(streams, buffers: buffers)
    library?.tell(events)
    capacity.now = makeCapacity(of: configuration)
  }

  /// Listens, serves until SIGTERM or SIGINT, then ends everything in order. Throws `ConfigurationError` if this machine prevents
  /// the start.
  ///
  /// - Parameter openingPage: whether the first source's page is opened in a browser, if there is a desktop.
  func run(openingPage: Bool = false) async throws {
    // Without this, a file at the size limit ends the server instead of being an error of its recording (EFBIG).
    signal(SIGXFSZ, SIG_IGN)
    try await checkFallbacks(of: configuration.streams)
    await resumeEvents()
    await resumeStreams()
    await recordings?.finishLeftovers(patience: Self.leftoverPatience)
    let control = try openControlDatabase()
    let given = try takeSettings(of: control)
    let protocols = protocols(self)
    let tokens = try makeTokens()
    if configuration.jwt.hasKeys { authorizer.tokens.now = tokens }
    if let folder = configuration.segmentsFolder {
      try? await NIOSingletons.posixBlockingThreadPool.runIfActive { [logger] in
        SegmentSweep.run(folder: folder, logger: logger)
      }
    }
    let memory = MemoryBudget(logger: logger)
    let sources = SourceRegistry(configuration.sources.map(makeSource))
    if configuration.sourcesBegin == .offAir { for source in sources.all { source.preview() } }
    let certificate = CertificateHolder(logger: logger)
    try certificate.prepare(for: configuration, protocols)
    let listening = ListeningSockets()
    var endpoints: [PublisherProtocol.Endpoint] = []
    for (place, each) in publisherPlaces(configuration, protocols, certificate) {
      let bound = try await place.start()
      await listening.add(place, bound: bound)
      endpoints.append(PublisherProtocol.Endpoint(setting: place.setting, address: bound, of: each))
    }
    let portBySetting = Dictionary(endpoints.map { ($0.setting, $0.address.port) }) { first, _ in first }
    func port(_ setting: SettingName) -> Int? { portBySetting[setting] ?? nil }
    let settings = SettingsHolder()
    let ingest = transportIngest
    let publishers: [any PublisherEntrance] = protocols.map { $0.listener } + [ingest]
    let http = makeHTTPListener(
      publishers, ingest, protocols.lazy.compactMap { $0.listener as? WebRTCListener }.first,
      ports: PublisherPorts(rtmp: port("rtmp"), rtmps: port("rtmps"), srt: port("srt"), webRTC: port("webrtc")),
      memory: memory, sources: sources,
      settings: settings, control: control, tokens: tokens, certificate: certificate)
    var pages: [SettingName: SocketAddress] = [:]
    for place in pagePlaces(configuration, http, certificate) {
      let bound = try await place.start()
      await listening.add(place, bound: bound)
      pages[place.setting] = bound
    }
    guard let page = pages["http"] else { throw ChannelError.unknownLocalAddress }
    let commands = try await listenToCommands(http)
    descriptors.onShortage { count in http.shedSoon(count) }
    streams.open(channels: configuration.streams.names)
    settings.control = makeReloader(
      protocols, given: given, http: http, listening: listening, certificate: certificate, control: control,
      tokens: tokens)
    let report = StartupReport(
      configuration: configuration, capacity: capacity.now, http: page, https: pages["https"], endpoints: endpoints,
      addresses: MachineAddresses.all(),
      publishing: authorizer.isClosedToAll ? .closedToAll : authorizer.isClosed ? .byKey : .open)
    let running = RunningServer(
      report: report, streams: streams, recordings: recordings, clock: clock, publishers: publishers,
      http: http, commands: commands, sources: sources, certificate: certificate, memory: memory,
      inhibitor: SleepInhibitor(clock: clock, logger: logger), tokens: tokens, stateStore: stateStore,
      events: events, hooks: hooks, settings: settings, control: control, waker: waker, opensPage: openingPage,
      logger: logger)
    let services = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: running.services.map { .init(service: $0) }, gracefulShutdownSignals: [.sigterm, .sigint],
        logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }))
    try await services.run()
    logger.notice("stopped")
  }

  /// Opens the files of fallbacks, so that a mistake shows at start.
  func checkFallbacks(of profiles: StreamProfiles) async throws(ConfigurationError) {
    for case .file(let path)? in Set(profiles.all.map(\.settings.fallback)) {
      do {
        try await NIOSingletons.posixBlockingThreadPool.runIfActive { [fallbacks] in try fallbacks.check(path: path) }
      } catch {
        throw ConfigurationError(.configuration, "--fallback file:\(LogText.escaped(path)): \(error)")
      }
    }
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
      let profiles = configuration.streams
      let entries = try await NIOSingletons.posixBlockingThreadPool.runIfActive {
        try stateStore.begin { profiles[$0].settings }
      }
      streams.know(stateStore.groups)
      streams.resume(entries)
    } catch {
      logger.warning("streams begin anew, their state cannot be read: \(error)")
      streams.resume([:])
    }
  }

  /// Reads the keys of tokens.
  private func makeTokens() throws(ConfigurationError) -> ViewerTokens {
    do throws(ValueError) {
      return ViewerTokens(
        keys: try configuration.jwt.makeKeys(logger: logger), rules: configuration.jwt.rules,
        credentials: authorizer)
    } catch {
      throw Self.keysUnreadable(error)
    }
  }

  private func makeSource(_ source: SourceSpecification) -> LocalSource {
    let (name, streams, clock, logger) = (source.name, streams, clock, logger)
    switch source.kind {
    case .test(let rotation):
      var settings = TestSourceSettings.demo(
        segmentDuration: .seconds(configuration.streams[name].settings.segmentTarget.seconds))
      settings.rotation = rotation
      return LocalSource(name: name, kind: "test", recording: .never, gate: streams) { [settings] _, gate in
        TestSource(name: name, settings: settings, gate: gate, clock: clock, logger: logger)
      }
    case .file(let path):
      return LocalSource(name: name, kind: "file", gate: streams) { _, gate in
        FileSource(name: name, path: path, gate: gate, clock: clock, logger: logger)
      }
    case .srt(let target):
      return LocalSource(name: name, kind: "srt", gate: streams) { [decoding] _, gate in
        SRTSource(
          name: name, target: target, gate: decoding(gate), clock: clock, logger: logger,
          group: NIOSingletons.posixEventLoopGroup, launch: { .srt(udp: $0) })
      }
    case .capture(let given):
      return LocalSource(name: name, kind: "capture", gate: streams) { last, gate in
        CaptureSource(name: name, settings: last ?? given, gate: gate, clock: clock, logger: logger)
      }
    case .datagrams(let place):
      return LocalSource(name: name, kind: "udp", gate: streams) { [decoding, datagramSockets] _, gate in
        DatagramSource(
          name: name, place: place, gate: decoding(gate), clock: clock, logger: logger,
          group: NIOSingletons.posixEventLoopGroup, sockets: datagramSockets)
      }
    }
  }

  private var sourceRecordings: SourceRecordings? {
    recordings.map { [profiles] in
      SourceRecordings(library: $0, settings: { profiles.now[$0].settings }, logger: logger)
    }
  }

  // MARK: Listeners

  /// The gate, for publishers whose media may have to be decoded.
  func decoding(_ gate: any PublishGate) -> any PublishGate {
    DecodedMediaGate(gate, launcher: .ownProcess, room: workers, logger: logger) { [profiles] in
      profiles.now[$0].settings.audio
    }
  }

  /// Transport streams by HTTP.
  private var transportIngest: TransportIngest {
    var limits = TransportIngest.Configuration()
    limits.proxies = configuration.trustedProxies
    return TransportIngest(gate: decoding(streams), clock: clock, logger: logger, configuration: limits)
  }

  private func makeHTTPListener(
    _ publishers: [any PublisherEntrance], _ ingest: TransportIngest, _ webRTC: WebRTCListener?,
    ports: PublisherPorts,
    memory: MemoryBudget,
    sources: SourceRegistry, settings: SettingsHolder, control: ControlDatabase?, tokens: ViewerTokens,
    certificate: CertificateHolder
  ) -> HTTPListener {
    let attempts = AdminAttempts(clock: clock, events: events, logger: logger)
    let viewerAttempts = AdminAttempts(of: .viewers, clock: clock, events: events, logger: logger)
    let viewerGate = ViewerGate(
      tokens: tokens, rule: { [profiles] in profiles.now[$0].viewers },
      hasRules: { [profiles] in profiles.now.hasViewersRules }, rules: viewersRules,
      attempts: viewerAttempts)
    let gate = AdminGate(authorizer: authorizer, attempts: attempts)
    let traffic = HTTPTraffic()
    let metrics = MetricsReport(
      streams: streams, viewers: viewers, recordings: recordings, sources: sources, traffic: traffic,
      capacity: { [capacity] in capacity.now },
      attempts: attempts, viewerAttempts: viewerAttempts
    ) { ConnectionRefusals(sumOf: publishers.map(\.refusals)) }
    let replay = ReplayRoutes(
      archive: archive, streams: streams,
      layout: { [profiles] in profiles.now[$0].settings.layout },
      longClips: LongClips(memory: memory))
    let publicURL = configuration.publicURL
    let settingsOf = { @Sendable [profiles] (name: StreamName) in profiles.now[name].settings }
    let api = APIRoutes(
      streams: streams, viewers: viewers, recordings: recordings, captures: CaptureAPI(sources: sources),
      sources: SourcesAPI(
        sources: sources, previews: SourcePreviews(pool: threads.liveThumbnails), recordings: sourceRecordings,
        film: { [profiles, logger] in SourceFilm(name: $0, settings: profiles.now[$0].settings, logger: logger) }),
      replay: replay, events: EventsAPI(log: events, hooks: hooks),
      authorize: AuthorizeAPI(
        gate: viewerGate, recheck: { [recheck] in recheck.now }, isOfAPI: { APITable.find($0) != nil }),
      gate: gate, clock: clock, ports: ports, publicURL: publicURL,
      player: configuration.playerDefault, oEmbed: OEmbedAPI(publicURL: publicURL, settings: settingsOf),
      embedFrom: embedFrom, capacity: { [capacity] in capacity.now },
      control: ControlAPI(
        authorizer: authorizer, streams: streams, database: control, settings: settings, events: events,
        clock: clock, logger: logger),
      lists: SingleFlight(limit: 64, on: threads.reports, sharing: .untilBegun))
    let router = Router(
      live: LiveRoutes(
        streams: streams, viewers: viewers, thumbnails: Thumbnails(logger: logger, pool: threads.liveThumbnails),
        archive: archive, status: { api.status(of: $0) }),
      ingest: IngestRoutes(ingest: ingest),
      whip: WHIPRoutes(
        listener: webRTC, iceServers: configuration.iceServers.map(\.link), origins: { [origins] in origins.now }),
      whep: WHEPRoutes(
        // An account is for publishers, who have a key: anybody may be a viewer.
        listener: webRTC, iceServers: configuration.iceServers.filter { $0.account == nil }.map(\.link),
        streams: streams, viewers: viewers,
        descriptors: descriptors, gate: viewerGate),
      api: api,
      recordings: RecordingRoutes(
        library: recordings,
        thumbnails: recordings.map {
          RecordingThumbnails(library: $0, logger: logger, pool: threads.recordingThumbnails)
        }),
      replay: replay,
      pages: PageRoutes(
        files: WebFiles(folder: configuration.webFolder, prefix: publicURL?.path ?? ""),
        sharing: PageSharing(publicURL: publicURL, settings: settingsOf) { [embedFrom] in embedFrom.now }),
      metrics: MetricsRoutes(report: metrics, clock: clock, pool: threads.reports), gate: gate, viewers: viewerGate)
    let listener = HTTPListener(
      responder: router, limits: configuration.httpLimits, memory: memory, descriptors: descriptors,
      proxies: configuration.trustedProxies, origins: configuration.crossOrigin, hosts: configuration.hosts,
      certificateHosts: { certificate.current?.hosts }, passes: viewerGate, prefix: publicURL?.path ?? "",
      clock: clock, traffic: traffic, waker: waker,
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
}
