// Records what a viewer of a video element sees: the shown frames, stalls, and the requests.
// It is loaded before any script of the page; `measure.begin(video)` starts it.
"use strict";
window.measure = (() => {
  const BLOCKS = 20, BLOCK = 16, WIDTH = 320;
  const log = { began: null, first: null, frames: [], stalls: [], jumps: [], errors: [], requests: [], beeps: [], ended: null, sizes: [] };
  const canvas = document.createElement("canvas");
  canvas.width = BLOCKS;
  canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const now = () => performance.timeOrigin + performance.now();

  // The number in a frame; null if the checksum is wrong.
  const read = (video) => {
    const unit = video.videoWidth / WIDTH;
    let word = 0;
    pen.drawImage(video, 0, BLOCK / 4 * unit, BLOCKS * BLOCK * unit, BLOCK / 2 * unit, 0, 0, BLOCKS, 1);
    const { data } = pen.getImageData(0, 0, BLOCKS, 1);
    for (let n = 0; n < BLOCKS; n += 1) word = word * 2 + (data[4 * n + 1] > 127 ? 1 : 0);
    const number = Math.floor(word / 16), check = word % 16;
    return ((number ^ number >> 4 ^ number >> 8 ^ number >> 12) & 15) === check ? number : null;
  };

  const frames = (video) => {
    let fault = null;
    const shown = (_, frame) => {
      let number = null;
      try { number = read(video); } catch (error) { if (!fault) { fault = error; tell("harness", String(error)); } }
      const quality = video.getVideoPlaybackQuality();
      const at = now();
      log.first ??= at;
      log.frames.push([
        Math.round(at), frame.mediaTime, number, frame.presentedFrames, quality.totalVideoFrames, quality.droppedVideoFrames,
        video.currentTime - at / 1000,
      ]);
      const size = `${video.videoWidth}x${video.videoHeight}`;
      if (log.sizes.at(-1) !== size) log.sizes.push(size);
      video.requestVideoFrameCallback(shown);
    };
    video.requestVideoFrameCallback(shown);
  };

  // Stalls, in which the video's time stands still: [start, length in seconds, media time].
  const progress = (video) => {
    let before = { at: now(), time: video.currentTime };
    let stall = null, started = false;
    setInterval(() => {
      const current = { at: now(), time: video.currentTime };
      const passed = (current.at - before.at) / 1000, played = current.time - before.time;
      started ||= played > 0 && !video.seeking;
      if (started && video.videoWidth === 0) log.first ??= now();
      if (started && !video.ended) {
        if (Math.abs(played) < 0.2 * passed) {
          stall ??= [before.at, 0, current.time];
          stall[1] = (current.at - stall[0]) / 1000;
        } else {
          if (stall) log.stalls.push(stall);
          stall = null;
          if (played > passed * 1.3 + 0.25 || played < 0) log.jumps.push([current.at, played - passed, current.time]);
        }
      }
      if (video.ended) log.ended ??= now();
      before = current;
    }, 200);
    api.stall = () => stall;
  };

  // Calls `heard` with the context's time of each beginning of a sound, and `part` with the part that was loud so far.
  const listen = (source, heard, part = () => {}) => {
    const { context } = source;
    const processor = context.createScriptProcessor(512, 2, 1);
    let quiet = 0, total = 0, loud = 0;
    processor.onaudioprocess = ({ inputBuffer, playbackTime }) => {
      const samples = inputBuffer.getChannelData(0);
      for (let n = 0; n < samples.length; n += 1) {
        total += 1;
        if (Math.abs(samples[n]) > 0.1) {
          loud += 1;
          if (quiet > context.sampleRate * 0.2) heard(playbackTime + n / context.sampleRate);
          quiet = 0;
        } else quiet += 1;
      }
      part(loud / total);
    };
    source.connect(processor);
    processor.connect(context.destination);
  };

  // Start of each beep, by the audio output of the element. A processor tells times that are later than those of the samples that
  // it gets: by how much, a sound of a known time says.
  const beeps = async (video) => {
    const context = new AudioContext();
    const media = context.createMediaElementSource(video), known = context.createConstantSource();
    let late = 0;
    listen(media, (time) => log.beeps.push([now() - (context.currentTime - time + late) * 1000, video.currentTime]),
      (loud) => { api.loud = loud; });
    await context.resume();
    const begin = context.currentTime + 0.3;
    listen(known, (time) => { log.late = late = time - begin; });
    known.start(begin);
    known.stop(begin + 0.05);
  };

  const request = (url, range) => {
    const entry = { url: String(url), range, start: Math.round(now()), end: null, status: null };
    log.requests.push(entry);
    return entry;
  };
  const done = (entry, status) => {
    entry.end ??= Math.round(now());
    entry.status ??= status;
  };

  const hook = () => {
    const original = window.fetch;
    window.fetch = async (resource, options) => {
      const url = resource instanceof Request ? resource.url : new URL(resource, location.href).href;
      const headers = new Headers(options?.headers ?? (resource instanceof Request ? resource.headers : {}));
      const entry = request(url, headers.get("Range"));
      try {
        const answer = await original(resource, options);
        entry.status = answer.status;
        entry.answered = Math.round(now());
        return answer;
      } catch (error) {
        done(entry, error.name);
        throw error;
      }
    };
    const { open, send, setRequestHeader } = XMLHttpRequest.prototype;
    XMLHttpRequest.prototype.open = function (method, url, ...rest) {
      this.measured = { url: new URL(url, location.href).href };
      return open.call(this, method, url, ...rest);
    };
    XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
      if (name.toLowerCase() === "range") this.measured.range = value;
      return setRequestHeader.call(this, name, value);
    };
    XMLHttpRequest.prototype.send = function (body) {
      const entry = request(this.measured.url, this.measured.range ?? null);
      this.addEventListener("loadend", () => done(entry, this.status));
      return send.call(this, body);
    };
  };

  const tell = (severity, text) => { if (log.errors.length < 500) log.errors.push([Math.round(now()), severity, String(text).slice(0, 400)]); };

  hook();
  const api = {
    log, tell, now,
    stall: () => null,
    begin(video) {
      log.began = now();
      frames(video);
      progress(video);
      beeps(video).catch((error) => tell("harness", error));
    },
    // The whole record, with the player's own value of its latency.
    result(video) {
      const { buffered } = video;
      const stall = api.stall();
      const quality = video.getVideoPlaybackQuality();
      return {
        ...log, stalls: stall ? [...log.stalls, stall] : log.stalls, frozen: stall !== null, now: now(),
        time: video.currentTime, rate: video.playbackRate, paused: video.paused, muted: video.muted, ready: video.readyState, loud: api.loud ?? 0,
        total: quality.totalVideoFrames, dropped: quality.droppedVideoFrames,
        buffered: Array.from({ length: buffered.length }, (_, n) => [buffered.start(n), buffered.end(n)]),
        seekable: Array.from({ length: video.seekable.length }, (_, n) => [video.seekable.start(n), video.seekable.end(n)]),
      };
    },
  };
  return api;
})();
