/** The texts of the pages, in the reader's language: one JSON file for each. They are loaded before a page's script runs. */

/** The languages that there are. The first one is used where none of the reader's is there. */
const LANGUAGES = ["en", "de"];
/** Languages whose scripts run from right to left (ISO 639-1). */
const RIGHT_TO_LEFT = ["ar", "dv", "fa", "he", "ks", "ku", "ps", "sd", "ug", "ur", "yi"];
const TRIES = 3;
const PAUSE_MILLISECONDS = 500;

/** The reader's own choice with its region, for dates and numbers: "en-GB". */
export const locale = (globalThis.navigator?.languages ?? []).find((tag) => LANGUAGES.includes(primary(tag))) ?? LANGUAGES[0];
export const language = primary(locale);
export const direction = RIGHT_TO_LEFT.includes(language) ? "rtl" : "ltr";

/** @param {string} tag @returns {string} The language of a tag with a region. */
function primary(tag) { return tag.split("-")[0].toLowerCase(); }

const texts = await load();
const plurals = new Intl.PluralRules(language);
const counts = new Intl.NumberFormat(locale);

/** @returns {Promise<Record<string, string>>} */
async function load() {
  for (let left = TRIES; ; left -= 1) {
    try {
      const response = await fetch(new URL(`${language}.json`, import.meta.url));
      if (response.ok) return await response.json();
    } catch {
      // The connection may be back at the next try.
    }
    if (left <= 1) return {};
    await new Promise((resume) => setTimeout(resume, PAUSE_MILLISECONDS));
  }
}

/**
 * @param {string} key
 * @param {Record<string, string | number>} [values] What stands for {NAME} in the text.
 * @returns {string} The text; the key, where there is none.
 */
export function t(key, values = {}) {
  const text = texts[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/**
 * @param {string} key The key without the ending of its form: `.one`, `.other` …
 * @param {number} count
 * @param {Record<string, string | number>} [values]
 */
export function many(key, count, values = {}) {
  const form = `${key}.${plurals.select(count)}`;
  return t(form in texts ? form : `${key}.other`, { count: counts.format(count), ...values });
}
