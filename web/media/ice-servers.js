/** STUN and TURN servers that a server tells its peers. (RFC 9725 §4.6, RFC 8288 §3) */

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

/**
 * Gives them to a connection, before its local description is set: from there on the browser looks for its addresses.
 * @param {RTCPeerConnection} peer @param {RTCIceServer[]} iceServers
 */
export function useServers(peer, iceServers) {
  if (iceServers.length === 0) return;
  try {
    peer.setConfiguration({ ...peer.getConfiguration(), iceServers });
  } catch (error) {
    // An address that this browser does not take: most need none of them.
    console.warn(error);
  }
}
