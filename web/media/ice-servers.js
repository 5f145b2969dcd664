/** STUN and TURN servers that a server tells its publishers. (RFC 9725 §4.6, RFC 8288 §3) */

/** The most that are taken: browsers ask each of them. */
const MOST = 8;
/** `<turn:HOST>; rel="ice-server"; username="..."` up to the comma; quoted text may hold commas. */
const LINK = /<([^>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]+))*)/g;
const PARAMETER = /;\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]+))/g;

/** @param {string} link Fields `Link`, joined by commas. @returns {{urls: string, username?: string, credential?: string}[]} */
export function iceServersOf(link) {
  const servers = [];
  for (const [, urls, parameters] of link.matchAll(LINK)) {
    const given = new Map([...parameters.matchAll(PARAMETER)].map(([, name, quoted, plain]) =>
      [name.toLowerCase(), quoted?.replace(/\\(.)/g, "$1") ?? plain]));
    if (given.get("rel") !== "ice-server" || !/^(stun|turn)s?:/.test(urls) || servers.length === MOST) continue;
    const username = given.get("username"), credential = given.get("credential");
    servers.push(username === undefined || credential === undefined ? { urls } : { urls, username, credential });
  }
  return servers;
}
