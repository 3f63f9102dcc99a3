// One screen: a line that says all, and more behind a button. One module with words.js and drawing.js before it: no
// build step, nothing from elsewhere.

const SILENT_S = 12; // the kernel says something every 5 s at least, or has ended
const ASK_AGAIN_S = 30;
const TARGET = "jupyter-paddle-gpu"; // see successor.py

/** The screen of the kernel that the notebook has by now; null: it has none. Stays open while nobody answers. */
async function successor(manager) {
  const comm = await manager._create_comm(TARGET, crypto.randomUUID(), {});
  const id = await new Promise((resolve) => {
    comm.on_msg((message) => resolve(message.content.data.screen));
    comm.on_close(() => resolve(null));
  });
  return id && manager.get_model(id);
}

function render({ model, el }) {
  const say = speak(model.get("texts"));
  const me = Math.random().toString(36).slice(2);
  const manager = model.widget_manager;
  const past = [...model.get("past")].slice(-POINTS);
  let heardMs = null; // when this page has heard the kernel last; null: it shows what was kept
  let leavingMs = 0; // when the eviction ends, in this page's clock
  let open = false;
  let pressed = null; // {button, ms}: no answer yet
  let sure = 0;
  let onPage = false;
  let told = null;
  let askedMs = -Infinity; // for a successor

  const line = node("div", { class: "pg-line" });
  const state = node("span", { class: "pg-state", role: "status", "aria-live": "polite" });
  const facts = node("span", { class: "pg-facts" });
  const dial = node("span", {});
  const toggle = node("button", { type: "button", class: "pg-toggle", onclick: () => ((open = !open), draw()) });
  const more = node("div", { class: "pg-more" });
  const buttons = Object.fromEntries(["save", "release"].map((name) =>
    [name, node("button", { type: "button", class: "pg-button", onclick: () => press(name) })]));
  const said = node("span", { class: "pg-said", role: "status", "aria-live": "polite" });
  const row = node("div", { class: "pg-buttons" }, ...Object.values(buttons), said);
  line.append(dial, state, facts, toggle);
  const root = node("div", { class: "pg", role: "group", "aria-label": say("title") }, line, more, row);
  el.append(root);

  const write = (into, text) => into.textContent !== text && (into.textContent = text);

  function press(name) {
    if (name === "release" && performance.now() - sure > 5000) {
      sure = performance.now();
      return draw();
    }
    sure = 0;
    pressed = { name, ms: performance.now() };
    write(said, "");
    said.classList.remove("pg-fault");
    model.send({ press: name });
    draw();
    setTimeout(draw, 500);
  }

  function hear() {
    const { button, phase, step, nbytes, seconds, text } = model.get("said");
    if (!phase) return;
    pressed = null;
    said.classList.toggle("pg-fault", phase === "failed");
    const what = step == null ? say("noposition") : say("step", { step });
    write(said, phase === "begun" ? say(button === "save" ? "saving-now" : "releasing-now")
      : phase === "failed" ? text
      : say(`${button}-done`, { what, size: size(nbytes), time: duration(say, seconds) }));
    buttons.save.disabled = buttons.release.disabled = phase === "begun";
  }

  function take() {
    const now = model.get("now");
    heardMs = performance.now();
    if (now.leaving) leavingMs = heardMs + 1000 * now.leaving.remaining_s;
    if (now.reading) past.push(numbers(now.reading));
    if (past.length > POINTS) past.shift();
    draw();
  }

  /** This screen's kernel is silent: a busy one speaks again by itself, for one that has ended another one may speak. */
  async function ask() {
    askedMs = performance.now();
    const next = await successor(manager).catch(() => undefined);
    if (next === null) askedMs = Infinity;
    if (!next || next === model) return;
    hush();
    model = next;
    past.splice(0, past.length, ...model.get("past"));
    told = null;
    listen();
    take();
    shows();
  }

  function words(now) {
    const { standing: s, leaving: l } = now;
    if (l) return l.text || (s.detail ? `${say("evicting")}: ${s.detail}` : say("evicting"));
    if (!s.session) return say("alone");
    return say(s.state || "unknown");
  }

  function device({ standing: s }) {
    if (!s.session) return null;
    return say(s.device_kind || "none") + (s.devices > 1 ? ` × ${s.devices}` : "");
  }

  function safety({ standing: s, at_s }) {
    const age = heardMs == null ? 0 : (performance.now() - heardMs) / 1000;
    const n = s.snapshot;
    const budget = !s.saves ? say("nothing") : s.save_s == null ? say("unmeasured", { size: size(s.nbytes) })
      : say("fits", { size: size(s.nbytes), save: duration(say, s.save_s), grace: duration(say, s.grace_s) });
    const newest = !n ? say("nosnapshot") : [n.step == null ? say("noposition") : say("step", { step: n.step }),
      size(n.nbytes), say("ago", { age: duration(say, Math.max(0, Math.floor(at_s - n.created_s + age))) })].join(", ");
    return { budget, newest, tight: s.save_s != null && s.grace_s != null && s.save_s > s.grace_s };
  }

  function draw() {
    const now = model.get("now");
    if (!now.standing) return;
    const { standing: s, leaving: l, reading: r } = now;
    const left = l ? Math.max(0, (leavingMs - performance.now()) / 1000) : 0;
    const counts = l && l.outcome == null && heardMs != null;
    dial.replaceChildren(...(counts ? [ring(left, l.grace_s)] : []));
    dial.hidden = !counts;
    root.dataset.state = l ? (l.outcome ?? "evicting") : s.state || "none";
    write(state, words(now) + (counts && l.by ? `, ${say("by", { by: l.by })}` : ""));
    const { budget, newest, tight } = safety(now);
    const silentS = heardMs == null ? 0 : (performance.now() - heardMs) / 1000;
    if (told && silentS > SILENT_S && performance.now() - askedMs > 1000 * ASK_AGAIN_S) ask();
    const silent = !l && heardMs != null && silentS > SILENT_S && told;
    root.classList.toggle("pg-silent", silent);
    const gpu = r?.gpus[0];
    const parts = [
      s.tier, device(now),
      gpu && gpu.stale == null && gpu.utilization_percent != null ? `${gpu.utilization_percent.toFixed(0)} %` : null,
      gpu && gpu.memory_used_bytes != null ? say("of", { a: memory(gpu.memory_used_bytes), b: memory(gpu.memory_total_bytes) }) : null,
      s.wanted != null ? say("wants", { gpus: s.wanted, position: s.position }) : null,
      `${say("snapshot")}: ${newest}`,
      s.saves ? `${say("budget")}: ${budget}` : null,
      silent ? say("silent", { age: duration(say, Math.floor(silentS)) }) : null,
      heardMs == null ? say("asof", { time: new Date(1000 * now.at_s).toLocaleString() }) : null,
    ];
    facts.replaceChildren(...parts.filter(Boolean).map((text) => node("span", {}, text)));
    if (tight) facts.classList.add("pg-tight");
    toggle.setAttribute("aria-expanded", String(open));
    toggle.setAttribute("aria-label", say(open ? "less" : "more"));
    write(toggle, open ? "▾" : "▸");
    more.hidden = !open;
    if (open) expand(now, budget, newest, tight);
    buttons.save.disabled ||= !!pressed;
    write(buttons.save, say("save"));
    write(buttons.release, say(performance.now() - sure < 5000 && sure ? "sure" : "release"));
    row.hidden = !!l || heardMs == null;
    buttons.save.hidden = !s.saves;
    buttons.release.hidden = !s.devices && s.wanted == null;
    if (pressed && performance.now() - pressed.ms > 400) write(said, say("waits"));
  }

  function expand(now, budget, newest, tight) {
    const { standing: s, reading: r } = now;
    const lines = [];
    const add = (name, text, ...drawn) =>
      lines.push(node("span", { class: "pg-name" }, name), node("span", { class: "pg-value" }, ...drawn, text));
    const values = (index, which) => past.map((one) => one[index]?.[which] ?? null);
    if (r?.fault) add(say("GPU"), say("nodriver", { why: r.fault }));
    (r?.gpus ?? []).forEach((g, i) => {
      const name = `${say(g.kind)} ${g.name || g.id}`;
      if (g.stale) return add(name, say("stale", { why: g.stale }));
      const rest = [g.temperature_c == null ? null : `${g.temperature_c} °C`, g.power_w == null ? null : `${g.power_w.toFixed(0)} W`,
        g.throttled?.length ? say("throttled", { why: g.throttled.join(", ") }) : null].filter(Boolean);
      add(name, [g.utilization_percent == null ? say("unknown") : `${g.utilization_percent.toFixed(0)} %`, ...rest].join(" · "),
        spark(values(i, 0)));
      add(say("memory"), say("of", { a: memory(g.memory_used_bytes), b: memory(g.memory_total_bytes) }), spark(values(i, 1)));
    });
    if (r) {
      const h = r.host;
      const last = (which) => past.map((one) => one.at(-1)?.[which] ?? null);
      const used = h.cpu_percent == null ? null : (h.cpu_percent / 100).toFixed(1);
      add(say("host"), say("cores", { used, cores: h.cpu_limit_cores }), spark(last(0)));
      add(say("memory"), say("of", { a: memory(h.memory_used_bytes), b: memory(h.memory_limit_bytes) }), spark(last(1)));
    }
    add(say("budget"), budget + (tight ? ` — ${say("tooshort")}` : ""));
    add(say("snapshot"), newest);
    if (now.updates) add(say("updates"), String(now.updates));
    if (s.wanted != null) add(say("waiting"), s.why || say("wants", { gpus: s.wanted, position: s.position }));
    if (s.detail || s.fault) add("", [s.detail, s.fault].filter(Boolean).join(" · "));
    more.replaceChildren(...lines);
  }

  function shows() {
    const shown = onPage && document.visibilityState === "visible";
    if (shown === told) return;
    told = shown;
    model.send({ shown, browser: me });
    clearInterval(clock);
    if (shown) clock = setInterval(draw, 1000);
  }

  function listen() {
    model.on("change:now", take);
    model.on("change:said", hear);
  }

  function hush() {
    model.off("change:now", take);
    model.off("change:said", hear);
  }

  let clock = 0;
  let later = 0;
  const look = () => {
    clearTimeout(later);
    later = setTimeout(shows, onPage && document.visibilityState === "visible" ? 0 : 1500);
  };
  const leave = () => ((onPage = false), shows());
  const eye = new IntersectionObserver((entries) => ((onPage = entries.at(-1).isIntersecting), look()));
  eye.observe(root);
  document.addEventListener("visibilitychange", look);
  window.addEventListener("pagehide", leave);
  listen();
  draw();

  return () => {
    eye.disconnect();
    document.removeEventListener("visibilitychange", look);
    window.removeEventListener("pagehide", leave);
    hush();
    clearTimeout(later);
    clearInterval(clock);
    leave();
    clearInterval(clock);
  };
}

export default { render };
