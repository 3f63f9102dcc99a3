// What a screen says: words in the reader's language, sizes, durations.

function speak(texts) {
  const lang = (document.documentElement.lang || "").toLowerCase();
  const all = [lang, ...(navigator.languages || [navigator.language || "en"])];
  // Lab's pages say "en" whatever people speak: only another language there is a choice.
  const chosen = (lang && !lang.startsWith("en") ? lang : all[1] || "en").slice(0, 2).toLowerCase();
  const words = { ...texts.en, ...(texts[chosen] || {}) };
  const say = (key, values = {}) =>
    (words[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? words.unknown);
  return say;
}

function size(bytes) {
  if (bytes == null) return null;
  let value = bytes;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000) return `${unit === "B" || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

// Memory is counted in powers of two, as drivers do it; disks and files in powers of ten.
function memory(bytes) {
  if (bytes == null) return null;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [bytes, 0];
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1024;
  return `${value.toFixed(unit > 0 && value < 9.95 ? 1 : 0)} ${units[unit]}`;
}

function duration(say, s) {
  if (s == null) return null;
  if (s < 59.5) return say("seconds", { n: s < 9.95 && s % 1 ? s.toFixed(1) : s.toFixed(0) });
  const whole = Math.round(s);
  if (whole < 3600) return say("minutes", { m: Math.floor(whole / 60), s: whole % 60 });
  if (whole < 172800) return say("hours", { h: Math.floor(whole / 3600), m: Math.floor((whole % 3600) / 60) });
  return say("days", { d: Math.floor(whole / 86400) });
}
