/**
 * Which pages show the tools of operators: those of a signed-in operator, and those of a server without an admin token, where
 * nobody can sign in and whoever tries it out is the operator.
 */

import { hasToken } from "../api/admin.js";

/** @param {import("../api/api.js").Overview} overview @returns {boolean} Whether they are shown. */
export function showTools(overview) {
  const shown = overview.writable !== true || hasToken();
  document.body.dataset.tools = String(shown);
  return shown;
}
