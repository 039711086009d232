// What all parts of the page use: its elements, and how it complains.

const $ = (id) => document.getElementById(id);

function make(name, text = "", values = {}) {
  const element = Object.assign(document.createElement(name), values);
  element.textContent = text;
  return element;
}

// `of`: the part of the page that it is about, by its heading.
function complain(error, of = null) {
  const locked = error instanceof Problem && error.status === 401;
  if (of && !locked) of.after($("problem"));
  else document.querySelector("main").prepend($("problem"));
  $("problem").textContent = error?.message ?? String(error);
  $("problem").hidden = false;
  $("problem").scrollIntoView({ block: "nearest" });
  if (locked) lock();
}

function clean() {
  $("problem").hidden = true;
  $("problem").textContent = "";
}
