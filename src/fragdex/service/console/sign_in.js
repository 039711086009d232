// Takes a key, and tries it.

import { askJson } from "./api.js";
import { h } from "./dom.js";
import { title } from "./router.js";
import { keepScope, signIn, signOut } from "./session.js";

export function signInForm(problem, entered) {
  title("Sign in");
  const wrong = h("p.problem", { role: "alert", hidden: !problem }, problem?.message ?? "");
  const input = h("input#key", {
    type: "password", required: true, autocomplete: "off", spellcheck: false, placeholder: "ef_…",
    "aria-describedby": "key-help",
  });
  const enter = h("button", { type: "submit" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    enter.disabled = true;
    signIn(input.value.trim());
    try {
      keepScope((await askJson("usage")).scope);
    } catch (error) {
      signOut();
      wrong.textContent = error.message;
      wrong.hidden = false;
      enter.disabled = false;
      return;
    }
    await entered();
  };
  return h("form#key-form.card", { onsubmit: submit },
    h("h1", {}, "Sign in"), wrong,
    h("label", { for: "key" }, "Key"), input,
    h("p#key-help.soft", {}, "The service prints a key when it starts for the first time; ",
      h("code", {}, "fragdex key create"),
      " creates another one. Your tabs share the key, and closing the last one forgets it."),
    enter);
}
