/**
 * Styles and icons of the element, loaded once for all players of a page. Styles are no <link> elements, and icons are no
 * references to another server's file, which browsers do not follow.
 */

const STYLES = ["../ui/style.css", "../ui/player.css", "../ui/stage.css", "./weir-player.css"];
const ICONS = "../ui/icons.svg";

/** @typedef {{styles: CSSStyleSheet[], icons: Element}} Assets */

/** @type {Promise<Assets> | null} */
let loading = null;

/** @returns {Promise<Assets>} */
export function loadAssets() {
  loading ??= load().catch((error) => {
    loading = null;
    throw error;
  });
  return loading;
}

/** @returns {Promise<Assets>} */
async function load() {
  const [icons, ...styles] = await Promise.all([loadIcons(), ...STYLES.map(loadStyle)]);
  return { styles, icons };
}

/** @param {string} path */
async function loadStyle(path) {
  const response = await fetch(new URL(path, import.meta.url));
  if (!response.ok) throw new Error(`${response.url} responded with status ${response.status}`);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(await response.text());
  return sheet;
}

/** The browser reads the file itself, since pages with Trusted Types allow no parsing of text. @returns {Promise<Element>} */
function loadIcons() {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", new URL(ICONS, import.meta.url));
    request.responseType = "document";
    request.addEventListener("load", () => {
      const root = request.responseXML?.documentElement;
      if (root?.localName === "svg") resolve(root);
      else reject(new Error(`${ICONS} is no SVG`));
    });
    request.addEventListener("error", () => reject(new Error(`${ICONS} cannot be loaded`)));
    request.send();
  });
}
