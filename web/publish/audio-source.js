/** The audio that is sent: the microphone, the screen's own, both mixed, or silence. There is always one track. */

/** Peaks from here on are cut off by the converter, in full scale. */
const CLIPPING = 0.985;
const SILENT_DECIBELS = -60;

/** Events: `change`, when another track is sent; `lost`, when the microphone was taken away. */
export class AudioSource extends EventTarget {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {MediaStreamTrack | null} */
  #microphone = null;
  /** @type {MediaStreamTrack | null} */
  #screen = null;
  /** @type {MediaStreamTrack | null} */
  #track = null;
  /** @type {AudioNode[]} What is connected for the present track. */
  #nodes = [];
  /** @type {AnalyserNode | null} */
  #analyser = null;
  #isMuted = false;
  #samples = new Float32Array(2048);

  get isMuted() { return this.#isMuted; }

  /** @returns {MediaStreamTrack} What is sent. */
  get track() { return this.#track ?? this.#connect(); }

  /** @param {MediaStreamTrack | null} track */
  useMicrophone(track) {
    const old = this.#microphone;
    this.#microphone = track;
    if (track !== null) {
      track.onended = () => {
        if (this.#microphone !== track) return;
        this.useMicrophone(null);
        this.dispatchEvent(new Event("lost"));
      };
    }
    this.#exchange();
    old?.stop();
  }

  /** @param {MediaStreamTrack | null} track */
  useScreen(track) {
    if (track === null && this.#screen === null) return;
    const old = this.#screen;
    this.#screen = track;
    if (track !== null) track.onended = () => { if (this.#screen === track) this.useScreen(null); };
    this.#exchange();
    old?.stop();
  }

  /** @param {boolean} isMuted */
  mute(isMuted) {
    this.#isMuted = isMuted;
    this.#silence(this.track, ...this.#inputs);
  }

  /** @returns {MediaStreamTrack[]} What is to be heard. */
  get #inputs() {
    return /** @type {MediaStreamTrack[]} */ ([this.#microphone, this.#screen].filter((track) => track !== null));
  }

  /** Lets tracks be heard, or not: also each input, which may be sent itself until another track has its place. */
  #silence(/** @type {MediaStreamTrack[]} */ ...tracks) { for (const track of tracks) track.enabled = !this.#isMuted; }

  /** Browsers keep audio still until something is pressed. */
  wake() { this.#context?.resume().catch(() => {}); }

  #exchange() {
    const old = this.#track;
    this.#connect();
    this.dispatchEvent(new Event("change"));
    // The devices' own tracks go on.
    if (old !== null && old !== this.#microphone && old !== this.#screen) old.stop();
  }

  #connect() {
    for (const node of this.#nodes) node.disconnect();
    this.#nodes = [];
    this.#context ??= new AudioContext({ latencyHint: "interactive" });
    const context = this.#context;
    const tracks = this.#inputs;
    const inputs = tracks.map((track) => context.createMediaStreamSource(new MediaStream([track])));
    this.#analyser = context.createAnalyser();
    this.#analyser.fftSize = this.#samples.length;
    for (const input of inputs) input.connect(this.#analyser);
    this.#nodes = [...inputs, this.#analyser];
    if (tracks.length === 1) {
      // A single one is sent as it is: what passes the mixer comes later than the video.
      this.#track = tracks[0];
    } else {
      const mixer = context.createMediaStreamDestination();
      for (const input of inputs) input.connect(mixer);
      this.#nodes.push(mixer);
      this.#track = mixer.stream.getAudioTracks()[0];
    }
    this.#silence(this.#track, ...tracks);
    return this.#track;
  }

  /** @returns {{decibels: number, isClipping: boolean}} The newest peak, below full scale. */
  get level() {
    if (this.#analyser === null) return { decibels: SILENT_DECIBELS, isClipping: false };
    this.#analyser.getFloatTimeDomainData(this.#samples);
    let peak = 0;
    for (const sample of this.#samples) peak = Math.max(peak, Math.abs(sample));
    return { decibels: Math.max(SILENT_DECIBELS, 20 * Math.log10(peak || 1e-9)), isClipping: peak >= CLIPPING };
  }
}
