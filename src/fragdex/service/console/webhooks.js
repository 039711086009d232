// URLs that get events, and the state of their deliveries.

import { ask, askJson, post, send } from "./api.js";
import { chip, collection } from "./collection.js";
import { attempt, h, once, tell, twice } from "./dom.js";
import { when } from "./format.js";
import { title } from "./router.js";

export function show(view, { id, signal }) {
  return id ? deliveries(view, id, signal) : webhooks(view, signal);
}

function webhooks(view, signal) {
  const url = h("input#url", { type: "url", required: true, placeholder: "https://example.org/hook" });
  const types = h("input#types", { type: "text", placeholder: "file.*, render.*, transcription.*" });
  const secret = h("p.secret", { role: "status", hidden: true });
  let list;
  const told = (made) => {
    secret.hidden = false;
    secret.replaceChildren(...once("Its secret", made.secret));
  };
  const add = (event) => {
    event.preventDefault();
    const wanted = types.value.split(/[\s,]+/).filter(Boolean);
    return attempt(async () => {
      told(await post("webhooks", { url: url.value, ...(wanted.length && { types: wanted }) }));
      url.value = types.value = "";
      await list.refresh();
    });
  };
  const form = h("form.card.fields.writes", { onsubmit: add }, h("label", {}, h("span", {}, "URL"), url),
    h("label", {}, h("span", {}, "Events (all, if empty)"), types), h("button", { type: "submit" }, "Add webhook"));
  const coming = collection(view, {
    name: "Webhooks", path: "webhooks", field: "webhooks", heads: ["URL", "Events", "State", ""],
    empty: ["send", "No webhooks yet", "A webhook is a URL that is notified when files are ready and when renders and transcriptions end."], above: [form, secret],
    row: (one, refresh) => [
      [h("a", { href: `webhooks/${one.id}` }, one.url), one.disabled_because && h("div.wrong", {}, one.disabled_because)],
      one.types.filter((type) => type !== "*").join(", ") || "All",
      h(`span.chip${one.enabled ? ".ready" : ""}`, {}, one.enabled ? "Enabled" : "Disabled"),
      h("div.actions", {}, button("Ping", () => post(`webhooks/${one.id}/ping`, {}).then(() => tell("A ping is on its way."))),
        button(one.enabled ? "Disable" : "Enable",
          () => send("PATCH", `webhooks/${one.id}`, { enabled: !one.enabled }).then(refresh)),
        twice("Rotate secret", "Rotate now", async () => told(await post(`webhooks/${one.id}/rotate`, {}))),
        twice("Delete", "Delete for good", async () => {
          await ask(`webhooks/${one.id}`, { method: "DELETE" });
          await refresh();
        })),
    ],
  }, signal);
  return coming.then((made) => { list = made; });
}

const button = (label, deed) => h("button.quiet.writes", { type: "button", onclick: () => attempt(deed) }, label);

async function deliveries(view, id, signal) {
  const place = `webhooks/${encodeURIComponent(id)}`;
  const hook = await askJson(place, { signal });
  await collection(view, {
    name: "Deliveries", path: `${place}/deliveries`, field: "deliveries",
    heads: ["Event", "State", "Attempts", "Answer", "Next attempt", ""], empty: ["send", "Nothing sent yet", "Events from now on are sent, and listed here."],
    above: [h("p.row", {}, h("a.up", { href: "webhooks" }, "Webhooks"), h("code", {}, hook.url))],
    moving: (one) => !one.delivered_at && !one.failed_at,
    row: (one, refresh) => [
      [one.type, h("div.soft", {}, when(one.created_at)), one.problem && h("div.wrong", {}, one.problem)],
      chip(one.status), one.attempts, one.response_status ?? "", when(one.next_attempt_at),
      button("Send again", () => post(`${place}/deliveries/${one.id}/replay`, {}).then(refresh)),
    ],
  }, signal);
  title(hook.url);
}
