/** What a publisher by WHIP changes in its session: ICE begins again, over another network. (RFC 9725 §4.3.3, RFC 8840 §9) */

/** @param {string} text @returns {string[]} */
const linesOf = (text) => text.split(/\r\n|[\r\n]/).filter((line) => line !== "");

/** @param {string[]} lines @param {string} name @returns {string | undefined} The first attribute of that name. */
const attribute = (lines, name) => lines.find((line) => line.startsWith(`a=${name}:`));

/** @param {string[]} lines */
const joined = (lines) => lines.map((line) => `${line}\r\n`).join("");

/**
 * @param {string} offer
 * @returns {string} The fragment of it that tells the server the new name and password of the browser's agent.
 */
export function restartFragment(offer) {
  const lines = linesOf(offer);
  const wanted = [
    attribute(lines, "group"), attribute(lines, "ice-ufrag"), attribute(lines, "ice-pwd"),
    lines.find((line) => line.startsWith("m=")), attribute(lines, "mid"),
  ];
  return joined(/** @type {string[]} */ (wanted.filter((line) => line !== undefined)));
}

/**
 * @param {string} answer The answer to the first offer.
 * @param {string} fragment What the server responded to the fragment above.
 * @returns {string} The answer with the server's new name, password and candidates.
 */
export function restarted(answer, fragment) {
  const news = linesOf(fragment);
  const candidates = news.filter((line) => /^a=(candidate:|end-of-candidates)/.test(line));
  const lines = linesOf(answer).flatMap((line) => {
    if (/^a=(candidate:|end-of-candidates)/.test(line)) return [];
    if (line.startsWith("a=ice-ufrag:")) return [attribute(news, "ice-ufrag") ?? line];
    // Each section has a password; the candidates stand behind it.
    if (line.startsWith("a=ice-pwd:")) return [attribute(news, "ice-pwd") ?? line, ...candidates];
    return [line];
  });
  return joined(lines);
}
