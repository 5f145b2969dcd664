/** The elements of one player. Their IDs are those of the watch page, and hold within the player's own tree. */

import { direction, language, t } from "../strings/strings.js";

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Record<string, string | boolean>} Attributes */

/**
 * @param {string} tag
 * @param {Attributes} attributes True stands for an attribute without a value.
 * @param {(Element | string)[]} content
 */
function element(tag, attributes, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...content);
  return made;
}

/** @param {string} name A symbol of the icons in the same tree, whose IDs differ from those of the elements. */
function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const use = document.createElementNS(SVG, "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** @param {string} id @param {string} symbol @param {string} label @param {string} hint @param {string} keys @param {Attributes} more */
const button = (id, symbol, label, hint, keys, more = {}) => element("button", {
  id, class: "control", type: "button", "aria-label": t(label), title: t(hint), "aria-keyshortcuts": keys, ...more,
}, icon(symbol));

/** @param {string} id @param {string} label @param {Attributes} more */
const select = (id, label, more = {}) => element("select", { id, "aria-label": t(label), title: t(label), hidden: true, ...more });

/** @param {string} name The stream's. @returns {Element[]} */
export function markup(name) {
  const message = element("div", { id: "message", class: "message" },
    element("div", { id: "spinner", class: "spinner", "aria-hidden": "true" }),
    element("p", { id: "message-title", class: "message-title" }),
    element("p", { id: "message-text", class: "message-text" }),
    element("button", { id: "message-action", class: "button", type: "button", hidden: true }, t("watch.tryNow")));
  const seek = element("div", { id: "seek-row", class: "seek-row", hidden: true },
    element("input", {
      id: "seek", class: "seek", type: "range", min: "0", max: "1", step: "any", value: "1", "aria-label": t("player.time"),
      "aria-keyshortcuts": "ArrowLeft ArrowRight Home End",
    }),
    element("output", { id: "seek-bubble", class: "seek-bubble", "aria-live": "off", hidden: true }));
  const live = element("button", {
    id: "live", class: "live-button", type: "button", "aria-keyshortcuts": "Shift+L", title: t("watch.goLiveKeys"),
  }, element("span", { class: "dot" }), element("span", {}, t("state.live")),
    element("span", { id: "distance", class: "distance", "aria-hidden": "true" }));
  const buttons = element("div", { class: "buttons" },
    button("play", "play", "player.play", "player.playKeys", "k Space"),
    button("back", "back", "player.back", "player.backKeys", "j", { class: "control wide", hidden: true }),
    button("ahead", "ahead", "player.ahead", "player.aheadKeys", "l", { class: "control wide", hidden: true }),
    button("mute", "muted", "player.mute", "player.muteKeys", "m"),
    element("input", { id: "volume", class: "volume", type: "range", min: "0", max: "1", step: "0.05", value: "1", "aria-label": t("player.volume") }),
    live,
    element("time", { id: "position", class: "position", title: t("player.whenLive"), hidden: true }),
    element("span", { class: "spacer" }),
    element("span", { class: "captions quality" }, element("span", { id: "quality-shown", "aria-hidden": "true" }), select("quality", "watch.quality")),
    select("audio", "watch.audio", { class: "captions" }),
    select("captions", "watch.captions", { class: "captions" }),
    element("a", {
      id: "page", class: "control", target: "_blank", rel: "noopener", "aria-label": t("player.openOf", { name }), title: t("player.open"),
    }, icon("weir")),
    button("pip", "pip", "watch.pip", "watch.pipKeys", "p", { hidden: true }),
    button("fullscreen", "expand", "player.fullScreen", "player.fullScreenKeys", "f", { hidden: true }));
  const stage = element("div", { id: "stage", class: "stage", tabindex: "-1" },
    element("video", { id: "video", part: "video", playsinline: true, preload: "auto", tabindex: "-1" }),
    element("canvas", { id: "last-frame", class: "last-frame", "aria-hidden": "true", hidden: true }),
    element("img", { id: "poster", class: "last-frame", alt: "", hidden: true }),
    element("div", { id: "audio-only", class: "audio-only", hidden: true }, icon("audio"), element("span", {}, t("watch.audioOnly"))),
    message,
    element("button", { id: "unmute", class: "button unmute", type: "button", "aria-label": t("player.unmute"), hidden: true }, icon("muted"), element("span", {}, t("player.unmute"))),
    element("button", { id: "big-play", class: "big-play", type: "button", "aria-label": t("player.play"), hidden: true }, icon("play")),
    element("button", { id: "begin", class: "big-play", type: "button", "aria-label": t("player.play"), hidden: true }, icon("play")),
    element("div", { id: "controls", class: "controls", role: "group", "aria-label": t("player.controls") }, seek, buttons));
  return [
    element("section", { id: "player", class: "player", part: "player", "aria-label": t("player.ofStream", { name }), lang: language, dir: direction }, stage),
    element("p", { id: "announcer", class: "visually-hidden", role: "status", "aria-live": "polite" }),
  ];
}
