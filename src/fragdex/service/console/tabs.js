// Tabs (ARIA Authoring Practices): arrows go from one to the next, the rest of the keys into it.

import { h } from "./dom.js";

// `parts`: [id, name, element]; the first is chosen. Gives the element, and `choose(id)`.
export function tabs(label, parts) {
  const list = h("div.tabs", { role: "tablist", "aria-label": label });
  const panels = [];
  const choose = (id, focus = false) => {
    for (const tab of list.children) {
      const on = tab.id === `tab-${id}`;
      tab.ariaSelected = String(on);
      tab.tabIndex = on ? 0 : -1;
      if (on && focus) tab.focus();
    }
    for (const panel of panels) panel.hidden = panel.id !== `panel-${id}`;
  };
  for (const [id, name, element] of parts) {
    list.append(h(`button#tab-${id}`, {
      type: "button", role: "tab", "aria-controls": `panel-${id}`, onclick: () => choose(id),
    }, name));
    panels.push(h(`div#panel-${id}`, { role: "tabpanel", "aria-labelledby": `tab-${id}` }, element));
  }
  list.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const now = parts.findIndex(([id]) => `tab-${id}` === event.target.id);
    const next = { Home: 0, End: parts.length - 1 }[event.key] ?? (by && (now + by + parts.length) % parts.length);
    if (next === undefined) return;
    event.preventDefault();
    choose(parts[next][0], true);
  });
  choose(parts[0][0]);
  return { element: h("div", {}, list, panels), choose };
}
