// Loads modules of CommonJS: common({ name: address, … }), a promise of `require`.
const common = async (addresses) => {
  const texts = {};
  for (const [name, address] of Object.entries(addresses)) {
    texts[name] = await (await fetch(address)).text();
  }
  const made = {};
  const require = (name) => {
    if (!made[name]) {
      made[name] = { exports: {} };
      new Function("module", "exports", "require", texts[name])(made[name], made[name].exports, require);
    }
    return made[name].exports;
  };
  return require;
};
