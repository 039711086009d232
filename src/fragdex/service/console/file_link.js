// Links to files by their names, which records about them do not have.

import { askJson } from "./api.js";
import { h } from "./dom.js";

// Each name is requested once; of a file that is gone, its id is shown.
export function fileLinks(signal) {
  const names = new Map();
  return (id) => {
    const link = h("a", { href: `files/${id}` }, "…");
    if (!names.has(id)) names.set(id, askJson(`files/${id}`, { signal }).then((file) => file.filename).catch(() => id));
    names.get(id).then((name) => { link.textContent = name; });
    return link;
  };
}
