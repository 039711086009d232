// The key: in this tab's memory, never on the disk; tabs hand it to one another.

const KEY = "fragdex.key";
const SCOPE = "fragdex.scope";
const channel = new BroadcastChannel(`fragdex ${document.baseURI}`);
const changed = new EventTarget();

export const key = () => sessionStorage.getItem(KEY) ?? "";

// What the key may do: read, write or admin. The service decides; the console only hides the rest.
export const scope = () => sessionStorage.getItem(SCOPE) ?? "";

export function keepScope(told) {
  sessionStorage.setItem(SCOPE, told);
}

export function signIn(given) {
  sessionStorage.setItem(KEY, given);
  channel.postMessage({ key: given });
}

export function signOut() {
  sessionStorage.removeItem(KEY);
  channel.postMessage({ gone: true });
}

// Called when another tab signs in or out.
export function onChange(told) {
  changed.addEventListener("change", told);
}

channel.onmessage = ({ data }) => {
  if (data.asked) {
    if (key()) channel.postMessage({ key: key() });
    return;
  }
  const before = key();
  if (data.gone) sessionStorage.removeItem(KEY);
  else if (data.key) sessionStorage.setItem(KEY, data.key);
  if (Boolean(key()) !== Boolean(before)) changed.dispatchEvent(new Event("change"));
};

// Whether there is a key, here or in another tab of the console.
export async function found() {
  if (key()) return true;
  channel.postMessage({ asked: true });
  await new Promise((done) => {
    const timer = setTimeout(done, 150);
    changed.addEventListener("change", () => { clearTimeout(timer); done(); }, { once: true });
  });
  return Boolean(key());
}
