// The keys of the tenant, for who has one of the scope `admin`.

import { ask, post } from "./api.js";
import { chip, collection } from "./collection.js";
import { attempt, h, once, twice } from "./dom.js";
import { when } from "./format.js";
import { key, signIn, signOut } from "./session.js";

const SCOPES = [["read", "Read"], ["write", "Read and write"], ["admin", "Everything, including keys"]];
const DAYS = [["", "Never"], ["1", "In a day"], ["30", "In 30 days"], ["90", "In 90 days"], ["365", "In a year"]];
const GRACES = [["86400", "For a day"], ["3600", "For an hour"], ["0", "Not at all"]];
const DAY = 86_400_000; // milliseconds

export async function show(view, { signal }) {
  const select = (id, values) => h("select", { id }, values.map(([value, name]) => h("option", { value }, name)));
  const name = h("input#key-name", { type: "text", maxLength: 100, placeholder: "Purpose" });
  const scope = select("key-scope", SCOPES);
  const days = select("key-days", DAYS);
  const grace = select("key-grace", GRACES);
  const secret = h("p.secret", { role: "status", hidden: true });
  let list;
  const told = (made) => {
    secret.hidden = false;
    secret.replaceChildren(...once("The key", made.key));
  };
  const add = (event) => {
    event.preventDefault();
    return attempt(async () => {
      const ends = days.value ? new Date(Date.now() + Number(days.value) * DAY).toISOString() : null;
      told(await post("keys", { name: name.value.trim(), scope: scope.value, expires_at: ends }));
      name.value = "";
      await list.refresh();
    });
  };
  const label = (text, field) => h("label", {}, h("span", {}, text), field);
  const form = h("form.card.fields", { onsubmit: add }, label("Name", name), label("May", scope), label("Ends", days),
    h("button", { type: "submit" }, "Create key"));
  const rotation = h("p.row.soft", {}, h("label", { for: "key-grace" }, "After a rotation the old key stays valid"), grace);

  async function rotate(one, refresh) {
    const made = await post(`keys/${one.id}/rotate`, { previous_seconds: Number(grace.value) });
    // rotating the key of this session continues it with the new one
    if (own(one)) signIn(made.key);
    told(made);
    await refresh();
  }

  async function revoke(one, refresh) {
    await ask(`keys/${one.id}`, { method: "DELETE" });
    if (own(one)) {
      signOut();
      location.reload();
    } else await refresh();
  }

  const row = (one, refresh) => [
    [one.name || "No name", own(one) && h("span.chip.own", {}, "This key"), h("div.soft", {}, when(one.created_at))],
    one.scope, chip(one.status), when(one.last_used_at) || "Never",
    [when(one.expires_at) || "Never",
      one.previous_secret_until && new Date(one.previous_secret_until) > new Date()
        && h("div.soft", {}, `Old key: ${when(one.previous_secret_until)}`)],
    one.status === "valid" ? h("div.actions", {},
      twice("Rotate", "Rotate now", () => rotate(one, refresh)),
      twice("Revoke", own(one) ? "Revoke and sign out" : "Revoke for good", () => revoke(one, refresh))) : "",
  ];
  list = await collection(view, {
    name: "Keys", path: "keys", field: "keys", heads: ["Name", "Scope", "State", "Last used", "Ends", ""],
    empty: ["key", "No keys", "Create one above."], above: [form, secret, rotation], row,
  }, signal);
}

// A key ends with its id.
function own(one) {
  return key().endsWith(`_${one.id}`);
}
