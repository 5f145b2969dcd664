/** The page in place of a stream's page, or of its player, that the address does not let its reader see. */

import "../ui/page-strings.js";
import { root } from "../media/root.js";
import { t } from "../strings/strings.js";
import { byId, setText } from "../ui/dom.js";

// The server has not taken the token that the path begins with. It is not shown.
if (location.pathname.startsWith(`${root}/~`)) setText(byId("reason", HTMLElement), t("noAccess.over"));
