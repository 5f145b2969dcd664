/** Commands and addresses to copy. They use the server's public address, else that of this page, and never have a key or token. */

import { root } from "../media/root.js";
import { t } from "../strings/strings.js";
import { copyRow, make } from "./dom.js";

const KEY_PLACEHOLDER = "YOUR_KEY";
const RTMP_DEFAULT_PORT = 1935;
/** RTMPS has no port of its own: clients take that of HTTPS. */
const RTMPS_DEFAULT_PORT = 443;
/** How long SRT waits for packets that are sent again, as ffmpeg and OBS count it: microseconds. */
const SRT_LATENCY = 200_000;

/** The grammar of stream names. Other names are not put into a command. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** @param {string} name */
export const isStreamName = (name) => NAME.test(name);

/**
 * @param {string | null} url URL of a recording. Links may only lead to recordings of this server.
 * @returns {url is string}
 */
export const isOwnFile = (url) =>
  typeof url === "string" && url.startsWith(root) && /^(\/~[^/]*)?\/recordings\//.test(url.slice(root.length));

/**
 * @typedef {{rtmpPort: number | null, rtmpsPort?: number | null, srtPort?: number | null, webRTCPort?: number | null, publishKeyRequired: boolean, publicURL?: string | null,
 *   embedFrom?: string[]}} Server
 */

/** @param {Server} server @returns {URL} The address by which others reach the server. */
const addressOf = (server) => new URL(server.publicURL ?? location.origin + root);

/** @param {Server} server @returns {string} What the addresses of its pages and streams begin with. */
const startOf = (server) => addressOf(server).href.replace(/\/$/, "");

/** @param {"rtmp" | "rtmps"} scheme @param {number} port @param {number} usual @param {Server} server */
const publishAddress = (scheme, port, usual, server) =>
  `${scheme}://${addressOf(server).hostname}${port === usual ? "" : `:${port}`}/live`;

/**
 * The page that publishes. It has no key: that is typed there.
 * @param {string} name
 * @param {Server} server
 */
const publishLink = (name, server) => `${startOf(server)}/publish/${name}`;

/** @param {string} name @param {Server} server */
const watchLink = (name, server) => `${startOf(server)}/watch/${name}`;

/**
 * The code for pages of other sites.
 * @param {string} name
 * @param {string} title
 * @param {Server} server
 */
export function embedCodes(name, title, server) {
  const start = startOf(server);
  const label = title.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
  return {
    frame: `<iframe src="${start}/embed/${name}" title="${label}" width="640" height="360" style="border:0" ` +
      `allow="autoplay; fullscreen; picture-in-picture" allowfullscreen></iframe>`,
    element: `<script type="module" src="${start}/web/weir-player.js"></script>\n` +
      `<weir-player src="${start}/watch/${name}" autoplay></weir-player>`,
  };
}

/**
 * The link to the stream's page, and the code to embed its player.
 * @param {string} name
 * @param {string} title
 * @param {Server} server
 * @returns {HTMLElement[]}
 */
export function shareRows(name, title, server) {
  const link = watchLink(name, server), codes = embedCodes(name, title, server);
  const rows = [copyRow(t("share.link"), link), copyRow(t("share.code"), codes.frame), copyRow(t("share.element"), codes.element)];
  if (server.embedFrom?.length === 0) {
    rows.push(make("p", "hint", t("share.forbidden")));
  }
  return [...rows, qrPlace(t("share.watch"), link)];
}

/**
 * The link for viewers, to copy and to scan.
 * @param {string} name
 * @param {Server} server
 * @returns {HTMLElement[]}
 */
export function viewerRows(name, server) {
  const link = watchLink(name, server);
  return [copyRow(t("share.link"), link), qrPlace(t("share.watch"), link)];
}

/** @param {string} name @param {Server} server @returns {HTMLElement[]} */
export function watchRows(name, server) {
  const base = `${startOf(server)}/live/${name}`;
  return [
    copyRow("ffplay", `ffplay ${base}/index.m3u8`),
    copyRow("VLC", `vlc ${base}/index.m3u8`),
    copyRow(t("links.obsSource"), `${base}/index.m3u8`),
    copyRow("DASH", `${base}/manifest.mpd`),
    copyRow(t("links.lowestDelay"), `ffplay -fflags nobuffer -flags low_delay ${base}/stream.mp4`),
  ];
}

/** @param {string} label @param {string} text @returns {HTMLElement} Gets the QR code when its scripts have been loaded. */
function qrPlace(label, text) {
  const place = make("div");
  import("./qr-image.js").then(({ qrImage }) => place.append(qrImage(label, text) ?? ""), () => {});
  return place;
}

/** @param {string} name @returns {HTMLElement} */
function publishHere(name) {
  const link = /** @type {HTMLAnchorElement} */ (make("a", "button", t("links.publishHere")));
  link.href = `${root}/publish/${encodeURIComponent(name)}`;
  return make("p", "publish-here", link);
}

/**
 * @param {string} streamID
 * @param {Server} server
 * @returns {string | null} The address for publishers by SRT, whole: no field beside it takes the stream's name.
 */
export const srtAddress = (streamID, server) => server.srtPort
  ? `srt://${addressOf(server).hostname}:${server.srtPort}?streamid=${streamID}&latency=${SRT_LATENCY}` : null;

/**
 * @param {string} name
 * @param {Server} server
 * @returns {HTMLElement[]}
 */
export function publishRows(name, server) {
  const { rtmpPort, rtmpsPort, webRTCPort } = server;
  const key = server.publishKeyRequired ? `${name}?key=${KEY_PLACEHOLDER}` : name;
  const here = webRTCPort ? [publishHere(name), copyRow(t("links.browser"), publishLink(name, server))] : [];
  const secure = rtmpsPort ? publishAddress("rtmps", rtmpsPort, RTMPS_DEFAULT_PORT, server) : null;
  const plain = rtmpPort ? publishAddress("rtmp", rtmpPort, RTMP_DEFAULT_PORT, server) : null;
  const rtmp = plain ?? secure;
  const srt = srtAddress(key, server);
  const bySRT = srt === null ? [] : [
    copyRow(t("links.srtServer"), srt),
    copyRow(t("links.srtFile"), `ffmpeg -re -i input.mp4 -c copy -f mpegts "${srt}"`),
  ];
  const hint = make("p", "hint", server.publishKeyRequired ? t("links.keyHint", { placeholder: KEY_PLACEHOLDER }) : t("links.obsHint"));
  if (rtmp === null) return [...here, ...bySRT, srt === null ? make("p", "hint", t("links.noRTMP")) : hint];
  const rows = [
    ...here,
    copyRow(t("links.obsServer"), rtmp),
    ...(plain !== null && secure !== null ? [copyRow(t("links.obsSecure"), secure)] : []),
    copyRow(t("links.obsKey"), key),
    copyRow(t("links.file"), `ffmpeg -re -i input.mp4 -c copy -f flv "${rtmp}/${key}"`),
    copyRow(
      t("links.pattern"),
      `ffmpeg -re -f lavfi -i testsrc2=size=1280x720:rate=30 -f lavfi -i sine=frequency=440 -c:v libx264 ` +
        `-preset veryfast -g 60 -pix_fmt yuv420p -c:a aac -f flv "${rtmp}/${key}"`,
    ),
    ...bySRT,
  ];
  return [...rows, hint, qrPlace(t("share.publish"), `${secure ?? rtmp}/${name}`)];
}
