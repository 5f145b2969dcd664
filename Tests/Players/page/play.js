// Plays ?url= by ?player=, with the defaults of each player, and with what docs/playback.md advises for a version that has a
// fault. ?height= selects one rung of the ladder.
"use strict";
const query = new URLSearchParams(location.search);
const url = query.get("url");
const height = Number(query.get("height")) || null;
const video = document.querySelector("video");
const tell = (severity, text) => window.measure.tell(severity, text);
const short = (value) => { try { return JSON.stringify(value).slice(0, 300); } catch { return String(value); } };

const load = (file) => new Promise((resume, fail) => {
  const script = document.createElement("script");
  script.src = file;
  script.onload = resume;
  script.onerror = () => fail(new Error(`${file} cannot be loaded`));
  document.head.append(script);
});

const players = {
  async hlsjs() {
    await load("hls.js");
    const player = new Hls();
    player.on(Hls.Events.ERROR, (_, data) => tell(data.fatal ? "fatal" : "error", `${data.details} ${data.error ?? ""} ${data.reason ?? ""}`));
    if (height) {
      player.on(Hls.Events.MANIFEST_PARSED, () => {
        player.currentLevel = player.levels.findIndex((level) => level.height === height);
      });
    }
    player.loadSource(url);
    player.attachMedia(video);
    return player;
  },
  async dashjs() {
    await load("dash.js");
    const player = dashjs.MediaPlayer().create();
    player.on("error", (event) => tell("error", short(event.error?.message ?? event.error)));
    player.on("playbackError", (event) => tell("fatal", short(event.error)));
    if (height) {
      player.updateSettings({ streaming: { abr: { autoSwitchBitrate: { video: false } } } });
      player.on("streamInitialized", () => {
        const index = player.getRepresentationsByType("video").findIndex((one) => one.height === height);
        player.setRepresentationForTypeByIndex("video", index, true);
      });
    }
    player.initialize(video, url, true);
    return player;
  },
  async shaka() {
    await load("shaka.js");
    shaka.polyfill.installAll();
    const player = new shaka.Player();
    await player.attach(video);
    if (/^v5\.2\.(\d|10)(?!\d)/.test(shaka.Player.version)) {
      player.configure("manifest.hls.sequenceMode", true);
    }
    const report = (error) => tell(error.severity === 2 ? "fatal" : "error", error.code ? `${error.code} ${short(error.data)}` : String(error));
    player.addEventListener("error", (event) => report(event.detail));
    if (height) player.configure({ abr: { enabled: false } });
    try {
      await player.load(url);
    } catch (error) {
      report(error);
    }
    if (height) player.selectVariantTrack(player.getVariantTracks().find((track) => track.height === height), true);
    return player;
  },
  async native() {
    video.onerror = () => tell("fatal", video.error.message);
    video.src = url;
  },
};

window.measure.begin(video);
players[query.get("player")]().then((player) => {
  window.player = player;
  // dash.js starts playback itself, and does not notice when other code starts it.
  return query.get("player") === "dashjs" ? null : video.play();
}).catch((error) => tell("error", String(error)));
