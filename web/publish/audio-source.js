/** The audio that is sent: the microphone, the screen's own, both mixed, or silence. There is always one track. */

import { levelOf } from "../media/audio-level.js";

/** A microphone's or screen's, at most. */
const CHANNELS = 2;

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
  /** @type {AnalyserNode[]} One for each channel, as each mixes its own input to one. */
  #analysers = [];
  #isMuted = false;
  /** Of each channel. */
  #samples = Array.from({ length: CHANNELS }, () => new Float32Array(2048));

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

  /** Lets the meter and the mixer run. Many browsers keep them still until something is pressed. */
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
    this.#nodes = [...inputs, ...this.#measure(inputs, context)];
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
    this.wake();
    return this.#track;
  }

  /**
   * Measures what is mixed of these.
   * @param {AudioNode[]} inputs @param {AudioContext} context
   */
  #measure(inputs, context) {
    const mixed = new GainNode(context, { channelCount: CHANNELS, channelCountMode: "explicit" });
    for (const input of inputs) input.connect(mixed);
    const splitter = context.createChannelSplitter(CHANNELS);
    mixed.connect(splitter);
    this.#analysers = this.#samples.map((samples, channel) => {
      const analyser = new AnalyserNode(context, { fftSize: samples.length });
      splitter.connect(analyser, channel);
      return analyser;
    });
    return [mixed, splitter, ...this.#analysers];
  }

  /** @returns {{decibels: number, isClipping: boolean}} The newest peak of the loudest channel, below full scale. */
  get level() {
    this.#analysers.forEach((analyser, channel) => analyser.getFloatTimeDomainData(this.#samples[channel]));
    return levelOf(this.#samples);
  }
}
