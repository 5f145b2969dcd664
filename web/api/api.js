/** The server's HTTP API, as the web pages use it. */

import { fetchOnce, fieldsUntil, isEarly } from "../media/early-requests.js";
import { timeout } from "../media/fetching.js";
import { base, root } from "../media/root.js";

/**
 * @typedef {object} Track
 * @property {number} id
 * @property {"video" | "audio"} kind
 * @property {string} rendition Its path segment in addresses of media: "audio-2".
 * @property {string} language ISO 639-2; "und" if unknown.
 * @property {"main" | "hearingImpaired" | "description"} role
 * @property {string} codec Name to show: "H.264".
 * @property {string} codecString RFC 6381.
 * @property {number | null} [width]
 * @property {number | null} [height]
 * @property {number | null} [frameRate] Frames per second.
 * @property {number | null} [sampleRate] Hertz.
 * @property {number | null} [channels]
 */

/**
 * @typedef {object} Stream
 * @property {string} name
 * @property {string | null} [title] As configured.
 * @property {string | null} [description] As configured.
 * @property {"live" | "starting" | "reconnecting" | "offAir" | "ended"} state
 * @property {string} protocol
 * @property {string} startedAt ISO 8601.
 * @property {number} ageSeconds
 * @property {number} viewers
 * @property {number} bitrate Bits per second.
 * @property {number | null} gopSeconds Seconds between key frames.
 * @property {Track[]} tracks
 * @property {string[]} warnings
 * @property {StreamRecording | null} [recording] The newest recording.
 * @property {Ladder | null} [ladder] The transcoded renditions.
 * @property {{codecString: string | null} | null} [audio] The audio in another codec.
 * @property {Capture | null} [capture] State of the server's own camera, microphone and encoder.
 * @property {Link | null} [link] The publisher's connection, where its protocol counts packets.
 * @property {Received} [received] What came by its present protocol since the stream was created.
 * @property {{mediaSeconds: number, wall: string} | null} [anchor] The wall clock at one media time.
 * @property {"mse" | "hls"} [player] The engine that the server prefers.
 * @property {{watch: string, hls: string, dash: string, mp4: string}} urls
 */

/**
 * @typedef {object} StreamRecording
 * @property {"idle" | "running" | "completed" | "failed" | "cancelled"} state
 * @property {string | null} reason Why it failed; while it runs, its present problem.
 * @property {string | null} [file] Its path below the folder of recordings.
 * @property {number} seconds Seconds of media.
 * @property {number} bytes
 * @property {Gap[]} [gaps]
 */

/**
 * @typedef {object} Gap Media that is missing in a recording.
 * @property {number} at Position of the gap, in seconds of the recording.
 * @property {number} seconds Length of the missing media, by the wall clock.
 * @property {string} reason
 */

/**
 * @typedef {object} KeyFrames
 * @property {number[]} keyFrames Seconds of the recording at which decoding can begin.
 * @property {{at: number, time: string}[]} clock The wall clock at some seconds of the recording; valid up to the next entry.
 */

/**
 * @typedef {object} Ladder
 * @property {"idle" | "running" | "waiting"} worker The worker process that makes the renditions.
 * @property {number} restarts Number of restarts of the worker.
 * @property {number} droppedFrames Frames dropped because the machine was too slow, or no worker was running.
 * @property {{name: string, width: number, height: number, codecString: string, bitrate: number}[]} renditions Those that can be played.
 */

/**
 * @typedef {object} Link Packets since the connection's beginning.
 * @property {number} rttMilliseconds
 * @property {number} latencyMilliseconds
 * @property {number} receivedPackets
 * @property {number} lostPackets At first.
 * @property {number} retransmittedPackets
 * @property {number} droppedPackets They came too late, and are missing in the media.
 */

/**
 * @typedef {object} Received Counters that never decrease.
 * @property {number} videoFrames
 * @property {number} keyFrames
 * @property {number} audioFrames
 * @property {number} lostVideoFrames They came, but could not be used.
 * @property {number} lostAudioFrames
 * @property {number} earlyVideoFrames They came before the first key frame of the publication, or are audio that overlaps the frames before it.
 * @property {number} earlyAudioFrames
 * @property {number} mendedVideoFrames Their timestamp was wrong and is mended.
 * @property {number} mendedAudioFrames
 * @property {number} audioCorrections Gaps and dropped frames that brought audio back to its timestamps.
 */

/**
 * @typedef {object} Capture
 * @property {{device: string, name: string, mode: string, state: string, problem: string | null, captured: number,
 *   lost: number, corrupt: number, dropped: number, encoded: number, encoder: string | null,
 *   encoderRestarts: number, encodeMicroseconds: number} | null} video
 * @property {{device: string, state: string, problem: string | null, sampleRate: number, channels: number,
 *   overruns: number, bridgedSamples: number, skewMicroseconds: number} | null} audio
 */

/**
 * @typedef {object} Overview
 * @property {string} version
 * @property {Stream[]} streams
 * @property {number | null} rtmpPort
 * @property {number | null} [rtmpsPort]
 * @property {number | null} [srtPort] Null if the server takes no SRT.
 * @property {number | null} [webRTCPort] Null if the server takes no WebRTC.
 * @property {string[]} [embedFrom] Origins whose pages may embed the player.
 * @property {boolean} publishKeyRequired
 * @property {string | null} [publicURL] The configured public URL of the server: "https://live.example.com".
 * @property {boolean} [records] Whether streams are recorded, at least on request.
 * @property {boolean} [writable] Whether the server has an admin token.
 */

/**
 * @typedef {object} LocalSource A publisher that is part of the server.
 * @property {string} name
 * @property {"test" | "file" | "capture" | "udp"} kind
 * @property {"live" | "preview" | "stopping" | "stopped"} state "preview": captured, but not offered to viewers.
 * @property {string | null} reason Why it stopped, if that was not requested.
 * @property {StreamRecording | null} recording The newest recording of the source itself, which runs on air and off.
 * @property {Capture | null} capture
 * @property {{state: string, problem: string | null} | null} reception Of a transport stream by UDP.
 */

/**
 * @typedef {object} Device A camera or microphone of the server's machine.
 * @property {string} device Name in a source specification: "v4l2:/dev/video0".
 * @property {string} name
 * @property {string | null} problem Why it cannot be used.
 */

/**
 * @typedef {object} Recording
 * @property {string} stream
 * @property {string} file
 * @property {string | null} [name] The name that a client gave to it.
 * @property {string | null} [note] What a client noted about it.
 * @property {string | null} url Null while it cannot be played.
 * @property {string | null} thumbnail
 * @property {number} bytes
 * @property {number} seconds
 * @property {string} startedAt ISO 8601.
 * @property {string} state "running", "completed" or "failed".
 * @property {string | null} reason Why it failed.
 * @property {string[]} codecs RFC 6381.
 * @property {Gap[]} gaps
 * @property {boolean} salvaged
 * @property {boolean} protected
 * @property {string | null} deletedAt
 * @property {number | null} [finishing] Progress of finalising it as a movie, 0 to 1; null while it is not finalised.
 */

/**
 * @typedef {object} RecordingPage
 * @property {Recording[]} recordings Newest first.
 * @property {string | null} next The cursor of the next page.
 * @property {number} total Number of recordings on all pages.
 */

/**
 * @typedef {object} Storage
 * @property {number | null} freeBytes
 * @property {number | null} totalBytes
 * @property {number} recordedBytes
 * @property {number} deletedBytes
 * @property {number} keepFreeBytes
 * @property {number} undoSeconds
 * @property {boolean} writable Whether the server has an admin token.
 */

/** Time limit of one request. */
const TIMEOUT_MILLISECONDS = 8000;

/** Where this tab keeps the admin token: with it, lists show streams that are not open to everybody. */
export const ADMIN_TOKEN = "weir.adminToken";

/** @param {string} path @returns {Promise<Response>} */
function get(path) {
  const token = sessionStorage.getItem(ADMIN_TOKEN);
  /** @type {Record<string, string>} */
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  return fetch(path, { cache: "no-store", headers, signal: timeout(TIMEOUT_MILLISECONDS) });
}

/** @template T @param {string} path @returns {Promise<T>} */
async function getJSON(path) {
  const response = await get(path);
  if (!response.ok) throw new Error(`${path} responded with status ${response.status}`);
  return response.json();
}

/** @returns {Promise<Overview>} */
export const fetchOverview = () => getJSON(`${base}/api/v1/streams`);

/** @param {Record<string, string | number>} query Empty values are left out. @returns {Promise<RecordingPage>} */
export async function fetchRecordings(query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "").map(([name, value]) => [name, String(value)]);
  const text = new URLSearchParams(given).toString();
  const page = await getJSON(`${base}/api/v1/recordings${text && "?"}${text}`);
  const recordings = page.recordings ?? [];
  return { recordings, next: page.next ?? null, total: page.total ?? recordings.length };
}

/** @param {Recording} recording @returns {string} Its address in the API. */
export const addressOf = (recording) =>
  `${base}/api/v1/recordings/${encodeURIComponent(recording.stream)}/${encodeURIComponent(recording.file)}`;

/** @param {Recording} recording @returns {Promise<KeyFrames>} */
export const fetchKeyFrames = (recording) => getJSON(`${addressOf(recording)}/keyframes`);

/** @param {string} stream @param {string} file @returns {Promise<Recording>} */
export const fetchRecording = (stream, file) =>
  getJSON(`${base}/api/v1/recordings/${encodeURIComponent(stream)}/${encodeURIComponent(file)}`);

/**
 * @param {string} url The address of a clip.
 * @returns {Promise<number | null>} Its length in seconds, as far as the recording goes; null where it cannot be told.
 */
export const fetchClipLength = (url) => fetch(url, { method: "HEAD", cache: "no-store", signal: timeout(TIMEOUT_MILLISECONDS) })
  .then(({ headers }) => Number(headers.get("Weir-Clip-Seconds")) || null, () => null);

/** @param {Overview} overview @returns {Promise<Storage | null>} Null if recording is off. */
export const fetchStorage = async (overview) => overview.records === false ? null : getJSON(`${base}/api/v1/storage`);

/** @param {string} name @param {string} root */
const stateAddress = (name, root) => `${root}/live/${encodeURIComponent(name)}/status.json`;

/** @param {string} name @param {string} root @returns {boolean} Whether its state was asked for while the page loaded. */
export const isStateEarly = (name, root) => isEarly(stateAddress(name, root));

/**
 * The state of a stream for its players. Caches keep it for a second, so that many open players ask the server once.
 * @param {string} name
 * @param {string} root What the addresses of the stream's server begin with.
 * @param {"now" | "starting" | "live"} until What to wait for, for a second at most.
 * @returns {Promise<Stream | null>} Null if the name has never been published.
 */
export async function fetchStream(name, root = base, until = "now") {
  const address = stateAddress(name, root);
  const response = await fetchOnce(address, timeout(TIMEOUT_MILLISECONDS), false, fieldsUntil(address, until));
  if (response.status === 404 || response.status === 204) return null;
  if (!response.ok) throw new Error(`the server responded with status ${response.status}`);
  return response.json();
}

/**
 * The state of a stream at this moment, past all caches.
 * @param {string} name
 * @returns {Promise<Stream | "hidden" | null>} Null if there is none; "hidden" if its state is for viewers with a token.
 */
export async function fetchStreamNow(name) {
  const path = `${base}/api/v1/streams/${encodeURIComponent(name)}`;
  const response = await get(path);
  if (response.status === 404) return null;
  if (response.status === 401 || response.status === 403) return "hidden";
  if (!response.ok) throw new Error(`${path} responded with status ${response.status}`);
  return response.json();
}

/** @returns {Promise<boolean>} Whether the server takes publishers. It does not while it is going down, or is gone. */
export const takesPublishers = () => get(`${root}/readyz`).then(({ status }) => status !== 503, () => false);

/** The server's clock: /time compared with the monotonic clock of this machine. */
export class ServerClock {
  /** @type {number | null} Milliseconds since 1970 on the server at performance.now() = 0. */
  #origin = null;
  #bestRoundTrip = Infinity;

  /** Measures several times and keeps the result with the shortest round trip. Its error is at most half of that. */
  async measure(times = 3) {
    for (let n = 0; n < times; n += 1) {
      const sent = performance.now();
      const text = (await (await get(`${root}/time`)).text()).trim();
      const received = performance.now();
      const server = Date.parse(text);
      if (Number.isNaN(server) || received - sent > this.#bestRoundTrip) continue;
      this.#bestRoundTrip = received - sent;
      this.#origin = server - (sent + received) / 2;
    }
    // Clocks drift apart slowly, so an old result must not stay the best one for ever.
    this.#bestRoundTrip *= 1.5;
  }

  /** @returns {number | null} Milliseconds since 1970 by the server's clock. */
  now() {
    return this.#origin === null ? null : this.#origin + performance.now();
  }
}
