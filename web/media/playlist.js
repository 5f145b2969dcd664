/** Parser of HLS playlists (RFC 8216bis): text in, segments and parts out. It uses neither network nor clock. */

/**
 * @typedef {{offset: number, length: number}} ByteRange
 * @typedef {{url: string, range: ByteRange | null}} Resource
 */

/**
 * @typedef {object} Part One part of a segment (§4.4.4.9).
 * @property {string} url
 * @property {ByteRange | null} range
 * @property {number} duration Seconds.
 * @property {boolean} independent Whether it begins with a key frame.
 * @property {boolean} gap Whether its media is missing.
 */

/**
 * @typedef {object} Segment
 * @property {number} sequence Media sequence number.
 * @property {number} discontinuity Discontinuity sequence number.
 * @property {string} url "" while the segment is incomplete.
 * @property {ByteRange | null} range
 * @property {number} duration Seconds; the sum of its parts while it is incomplete.
 * @property {number | null} date Wall clock at its beginning, in milliseconds since 1970.
 * @property {Resource | null} map Its init segment.
 * @property {boolean} gap Whether its media is missing.
 * @property {boolean} complete False for the segment that is being made.
 * @property {Part[]} parts
 */

/**
 * @typedef {object} MediaPlaylist
 * @property {number} targetDuration Seconds.
 * @property {boolean} isEnded
 * @property {boolean} independentSegments
 * @property {number} partTarget Seconds; 0 without parts.
 * @property {boolean} canBlockReload
 * @property {number} canSkipUntil Seconds; 0 if delta updates are not offered.
 * @property {number} holdBack Seconds.
 * @property {number} partHoldBack Seconds; 0 without parts.
 * @property {Segment[]} segments The last one may be incomplete.
 * @property {{url: string, start: number, length: number | null} | null} hint Preload hint of the next part.
 * @property {string[]} reports URLs of the other renditions, from their rendition reports (§4.4.5.4).
 */

/**
 * @typedef {object} Variant
 * @property {string} url
 * @property {string[]} codecs
 * @property {number} bandwidth Bits per second.
 * @property {{width: number, height: number} | null} size Frame size; null without video.
 * @property {string} audio Its group of audio renditions, or "".
 */

/**
 * @typedef {object} AlternativeRendition
 * @property {string} type AUDIO, SUBTITLES …
 * @property {string} group
 * @property {string} name
 * @property {string} url "" if the media is inside the variant.
 * @property {boolean} isDefault
 * @property {string} language A tag (RFC 5646), or "".
 * @property {string} channels Number of channels of audio, or "".
 */

/** Largest accepted number of segments. A longer playlist is no live window and would only fill the memory. */
const MAXIMUM_SEGMENTS = 100_000;

/**
 * @param {string} list An attribute list (§4.2).
 * @returns {Map<string, string>} Values without quotes.
 */
export function attributes(list) {
  const found = new Map();
  for (const [, name, quoted, plain] of list.matchAll(/([A-Z0-9-]+)=(?:"([^"]*)"|([^,]*))/g)) {
    found.set(name, quoted ?? plain.trim());
  }
  return found;
}

/** @param {string} text A playlist. Yields its lines without empty ones. */
function* lines(text) {
  for (const line of text.split(/\r?\n/)) if (line !== "") yield line;
}

/** @param {string} line @returns {[string, string]} A tag's name without "#", and its value; ["", line] for a URI. */
function tag(line) {
  if (!line.startsWith("#")) return ["", line];
  const colon = line.indexOf(":");
  return colon < 0 ? [line.slice(1), ""] : [line.slice(1, colon), line.slice(colon + 1)];
}

/** @param {string} text */
function requireHeader(text) {
  if (!text.startsWith("#EXTM3U")) throw new Error("this is no playlist: it does not begin with #EXTM3U");
}

/**
 * @param {string} text A multivariant playlist.
 * @param {string} base Its URL.
 * @returns {{variants: Variant[], renditions: AlternativeRendition[], data: Map<string, string>}} `data`: the values of
 *   EXT-X-SESSION-DATA.
 */
export function parseMultivariant(text, base) {
  requireHeader(text);
  /** @type {Variant[]} */
  const variants = [];
  /** @type {AlternativeRendition[]} */
  const renditions = [];
  const data = new Map();
  let pending = null;
  for (const line of lines(text)) {
    const [name, value] = tag(line);
    if (name === "EXT-X-STREAM-INF") pending = attributes(value);
    else if (name === "EXT-X-SESSION-DATA") {
      const a = attributes(value);
      data.set(a.get("DATA-ID") ?? "", a.get("VALUE") ?? "");
    }
    else if (name === "EXT-X-MEDIA") {
      const a = attributes(value);
      const uri = a.get("URI");
      renditions.push({
        type: a.get("TYPE") ?? "",
        group: a.get("GROUP-ID") ?? "",
        name: a.get("NAME") ?? "",
        url: uri === undefined ? "" : new URL(uri, base).href,
        isDefault: a.get("DEFAULT") === "YES",
        language: a.get("LANGUAGE") ?? "",
        channels: a.get("CHANNELS") ?? "",
      });
    } else if (name === "" && pending !== null) {
      variants.push({
        url: new URL(value, base).href,
        codecs: (pending.get("CODECS") ?? "").split(",").map((c) => c.trim()).filter(Boolean),
        bandwidth: Number(pending.get("BANDWIDTH")) || 0,
        size: resolution(pending.get("RESOLUTION") ?? ""),
        audio: pending.get("AUDIO") ?? "",
      });
      pending = null;
    }
  }
  return { variants, renditions, data };
}

/**
 * @param {string} text A media playlist, whole or a delta update (§4.4.5.2).
 * @param {string} base Its URL, without the query of the request.
 * @param {MediaPlaylist | null} previous The playlist that a delta update refers to.
 * @returns {MediaPlaylist}
 */
export function parseMedia(text, base, previous = null) {
  requireHeader(text);
  const reader = new MediaReader(base, previous);
  for (const line of lines(text)) reader.read(...tag(line));
  return reader.finish();
}

/** State while a media playlist is read: the tags that apply to what follows. */
class MediaReader {
  /** @type {MediaPlaylist} */
  #out = {
    targetDuration: 0, isEnded: false, independentSegments: false, partTarget: 0, canBlockReload: false,
    canSkipUntil: 0, holdBack: 0, partHoldBack: 0, segments: [], hint: null, reports: [],
  };
  #base;
  #previous;
  #sequence = 0;
  #discontinuity = 0;
  /** @type {Resource | null} */
  #map = null;
  /** @type {number | null} */
  #date = null;
  /** @type {number | null} Duration in seconds of the segment whose URI follows. */
  #duration = null;
  #gap = false;
  /** @type {ByteRange | null} */
  #range = null;
  /** @type {Part[]} */
  #parts = [];
  /** End of the last byte range of each resource, for ranges without an offset. */
  #ends = new Map();

  /** @param {string} base @param {MediaPlaylist | null} previous */
  constructor(base, previous) {
    this.#base = base;
    this.#previous = previous;
  }

  /** @param {string} name @param {string} value */
  read(name, value) {
    const out = this.#out;
    switch (name) {
      case "": this.#segment(value); break;
      case "EXTINF": this.#duration = Math.max(0, parseFloat(value) || 0); break;
      case "EXT-X-TARGETDURATION": out.targetDuration = Number(value) || 0; break;
      case "EXT-X-MEDIA-SEQUENCE": this.#sequence = Number(value) || 0; break;
      case "EXT-X-DISCONTINUITY-SEQUENCE": this.#discontinuity = Number(value) || 0; break;
      case "EXT-X-DISCONTINUITY":
        this.#discontinuity += 1;
        this.#date = null;
        break;
      case "EXT-X-INDEPENDENT-SEGMENTS": out.independentSegments = true; break;
      case "EXT-X-ENDLIST": out.isEnded = true; break;
      case "EXT-X-GAP": this.#gap = true; break;
      case "EXT-X-PROGRAM-DATE-TIME": this.#date = dateOrNull(value); break;
      case "EXT-X-BYTERANGE": this.#range = byteRange(value); break;
      case "EXT-X-MAP": this.#initSegment(attributes(value)); break;
      case "EXT-X-PART-INF": out.partTarget = Number(attributes(value).get("PART-TARGET")) || 0; break;
      case "EXT-X-SERVER-CONTROL": this.#serverControl(attributes(value)); break;
      case "EXT-X-PART": this.#part(attributes(value)); break;
      case "EXT-X-PRELOAD-HINT": this.#hint(attributes(value)); break;
      case "EXT-X-RENDITION-REPORT": this.#report(attributes(value)); break;
      case "EXT-X-SKIP": this.#skip(Number(attributes(value).get("SKIPPED-SEGMENTS")) || 0); break;
    }
  }

  /** @returns {MediaPlaylist} */
  finish() {
    if (this.#parts.length > 0) {
      this.#push({ url: "", range: null, duration: sum(this.#parts), complete: false, gap: false });
    }
    return this.#out;
  }

  /** @param {string} uri */
  #segment(uri) {
    if (this.#duration === null) return;
    const url = new URL(uri, this.#base).href;
    this.#push({ url, range: this.#placed(url, this.#range), duration: this.#duration, complete: true, gap: this.#gap });
    this.#duration = this.#range = null;
    this.#gap = false;
  }

  /** @param {Pick<Segment, "url" | "range" | "duration" | "complete" | "gap">} media */
  #push(media) {
    if (this.#out.segments.length >= MAXIMUM_SEGMENTS) throw new Error("the playlist lists too many segments");
    this.#out.segments.push({
      ...media, sequence: this.#sequence, discontinuity: this.#discontinuity, date: this.#date, map: this.#map,
      parts: this.#parts,
    });
    this.#sequence += 1;
    this.#parts = [];
    // A segment without a date begins where the one before it ended.
    if (this.#date !== null) this.#date += media.duration * 1000;
  }

  /** @param {Map<string, string>} a */
  #serverControl(a) {
    const out = this.#out;
    out.canBlockReload = a.get("CAN-BLOCK-RELOAD") === "YES";
    out.canSkipUntil = Number(a.get("CAN-SKIP-UNTIL")) || 0;
    out.holdBack = Number(a.get("HOLD-BACK")) || 0;
    out.partHoldBack = Number(a.get("PART-HOLD-BACK")) || 0;
  }

  /** @param {Map<string, string>} a */
  #initSegment(a) {
    if (a.has("URI")) this.#map = this.#resource(a);
  }

  /** @param {Map<string, string>} a */
  #part(a) {
    if (!a.has("URI")) return;
    const { url, range } = this.#resource(a);
    this.#parts.push({
      url, range, duration: Math.max(0, Number(a.get("DURATION")) || 0),
      independent: a.get("INDEPENDENT") === "YES", gap: a.get("GAP") === "YES",
    });
  }

  /** @param {Map<string, string>} a */
  #hint(a) {
    if (a.get("TYPE") !== "PART" || !a.has("URI")) return;
    const length = a.get("BYTERANGE-LENGTH");
    this.#out.hint = {
      url: new URL(/** @type {string} */ (a.get("URI")), this.#base).href,
      start: Number(a.get("BYTERANGE-START")) || 0,
      length: length === undefined ? null : Number(length) || 0,
    };
  }

  /** @param {Map<string, string>} a */
  #report(a) {
    if (a.has("URI")) this.#out.reports.push(new URL(a.get("URI") ?? "", this.#base).href);
  }

  /**
   * Takes the segments that a delta update skips from the previous playlist.
   * @param {number} count
   */
  #skip(count) {
    const first = this.#sequence;
    const known = this.#previous?.segments.filter((s) => s.sequence >= first && s.sequence < first + count) ?? [];
    if (known.length < count) throw new Error("a delta update refers to a playlist that is not available");
    this.#out.segments.push(...known);
    const last = known.at(-1);
    this.#sequence += count;
    if (last === undefined) return;
    this.#discontinuity = last.discontinuity;
    this.#map = last.map;
    this.#date = last.date === null ? null : last.date + last.duration * 1000;
  }

  /** @param {Map<string, string>} a @returns {Resource} */
  #resource(a) {
    const url = new URL(a.get("URI") ?? "", this.#base).href;
    return { url, range: this.#placed(url, byteRange(a.get("BYTERANGE") ?? "")) };
  }

  /** @param {string} url @param {ByteRange | null} range @returns {ByteRange | null} The range with an offset. */
  #placed(url, range) {
    if (range === null) return null;
    const offset = range.offset < 0 ? this.#ends.get(url) ?? 0 : range.offset;
    this.#ends.set(url, offset + range.length);
    return { offset, length: range.length };
  }
}

/** @param {string} text "1280x720". */
function resolution(text) {
  const match = /^(\d+)x(\d+)$/.exec(text);
  return match ? { width: Number(match[1]), height: Number(match[2]) } : null;
}

/** @param {string} text "length[@offset]". @returns {ByteRange | null} Offset −1: after the last range. */
function byteRange(text) {
  const match = /^(\d+)(?:@(\d+))?$/.exec(text);
  return match ? { length: Number(match[1]), offset: match[2] === undefined ? -1 : Number(match[2]) } : null;
}

/** @param {string} text @returns {number | null} */
function dateOrNull(text) {
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : date;
}

/** @param {Part[]} parts */
const sum = (parts) => parts.reduce((seconds, part) => seconds + part.duration, 0);
