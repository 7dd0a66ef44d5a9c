"use strict";
(() => {
  // Everything here comes from a journal and is not trusted: it reaches the page as text alone.
  const data = JSON.parse(document.getElementById("data").textContent);
  const ROW = 24, LINGER = 8;
  const GLYPH = {
    turn: "▣", attempt: "▷", model: "◆", call: "●", child: "⬡", approval: "?", retry: "↻", steer: "»", stop_requested: "■",
    stop_escalated: "■", stop_observed: "□", settled: "▪", quiet: "○", turn_ended: "▫", other: "·", damaged: "!",
  };
  const NAMES = {
    call_id: "call", effect_class: "tool may change", approval_id: "approval", expires_at: "expires", after_ms: "waits, ms",
    within_ms: "grace, ms", stopped_by: "stopped by", steer_id: "steer",
  };
  const by = (id) => document.getElementById(id);
  const make = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const took = (us) => {
    if (us >= 864e8) return `${Math.floor(us / 864e8)}d ${Math.floor((us % 864e8) / 36e8)}h`;
    if (us >= 36e8) return `${Math.floor(us / 36e8)}h ${Math.floor((us % 36e8) / 6e7)}m`;
    if (us >= 6e7) return `${Math.floor(us / 6e7)}m ${Math.floor((us % 6e7) / 1e6)}s`;
    if (us >= 1e6) return `${(us / 1e6).toFixed(us >= 1e7 ? 1 : 2)} s`;
    if (us >= 1e3) return `${(us / 1e3).toFixed(us >= 1e4 ? 0 : 1)} ms`;
    return `${Math.max(0, Math.round(us))} µs`;
  };

  // Rows: each turn's head, then its steps.
  const rows = [];
  const rounds = new Map();
  const heads = data.turns.map(() => -1);
  const last = (turn) => (turn ? turn.b : data.end);
  for (const step of data.steps) {
    const turn = data.turns[step.t];
    if (turn && heads[step.t] < 0) {
      heads[step.t] = rows.length;
      const words = `${turn.state}, ${turn.rounds} round${turn.rounds === 1 ? "" : "s"}, ${turn.in} tokens in, ${turn.out} out`;
      rows.push({ k: "turn", c: turn.c, t: step.t, r: 0, a: turn.a, b: turn.b, s: 1, l: turn.asked || turn.id, w: words, d: { turn: turn.id, asked: turn.asked } });
    }
    const row = { ...step, e: step.b ?? (step.s ? last(turn) : step.a) };
    rows.push(row);
    if (row.n && (row.k === "model" || row.k === "call" || row.k === "child")) {
      const key = `${row.t}/${row.r}/${row.n}`, known = rounds.get(key);
      if (known) { known.a = Math.min(known.a, row.a); known.b = Math.max(known.b, row.e); } else rounds.set(key, { a: row.a, b: row.e });
    }
  }
  for (const row of rows) row.e ??= row.b ?? row.a;
  const roundOf = (row) => (row.n ? rounds.get(`${row.t}/${row.r}/${row.n}`) : undefined);

  // Time, without the stretches in which nothing was running.
  const busy = rows.filter((row) => row.s ? !["turn", "attempt", "approval"].includes(row.k) : true)
    .map((row) => [row.a, row.e]).sort((one, other) => one[0] - other[0]);
  const folds = [];
  {
    let reach = busy.length ? busy[0][0] : 0, active = 0;
    const gaps = [];
    for (const [a, e] of busy) {
      if (a > reach) { gaps.push([reach, a]); reach = a; }
      if (e > reach) { active += e - reach; reach = e; }
    }
    const most = Math.max(2e6, active / 4), shown = Math.max(active * 0.05, 1);
    let cut = 0;
    for (const [a, e] of gaps) if (e - a > most) { folds.push({ a, e, cut, kept: shown }); cut += e - a - shown; }
  }
  const flat = (t) => {
    let lo = 0, hi = folds.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; if (folds[mid].a < t) lo = mid + 1; else hi = mid; }
    const fold = folds[lo - 1];
    if (!fold) return t;
    if (t >= fold.e) return t - fold.cut - (fold.e - fold.a - fold.kept);
    return fold.a - fold.cut + ((t - fold.a) / (fold.e - fold.a)) * fold.kept;
  };
  const whole = rows.length ? [flat(Math.min(...ends(rows, "a"))), flat(Math.max(...ends(rows, "e")))] : [0, 1];
  function ends(list, side) {
    // In stretches: a call takes a limited number of arguments.
    const found = [];
    for (let i = 0; i < list.length; i += 4096) {
      const part = list.slice(i, i + 4096).map((row) => row[side]);
      found.push(side === "a" ? Math.min(...part) : Math.max(...part));
    }
    return found;
  }

  const view = { mode: rows.length <= 60 ? "all" : "rows", picked: -1, from: whole[0], to: whole[1], shown: rows };
  const scroll = by("rows"), canvas = by("canvas"), axis = by("axis").firstElementChild, side = by("side"), tip = by("tip"), map = by("map");
  const at = (t) => ((flat(t) - view.from) / (view.to - view.from)) * 100;
  const clip = (x) => Math.min(101, Math.max(-1, x));

  function fit(first, end) {
    let set = [];
    if (view.mode === "all") { [view.from, view.to] = whole; }
    else {
      const turn = view.shown[view.picked >= 0 ? view.picked : first]?.t;
      set = view.mode === "turn" ? rows.filter((row) => row.t === turn) : view.shown.slice(first, end);
      const fine = set.filter((row) => !["turn", "attempt", "child", "approval"].includes(row.k));
      if (fine.length) set = fine;
      if (set.length) { view.from = flat(Math.min(...ends(set, "a"))); view.to = flat(Math.max(...ends(set, "e"))); }
    }
    if (!(view.to > view.from)) view.to = view.from + 1;
    const pad = (view.to - view.from) * 0.015;
    view.from -= pad; view.to += pad;
  }

  function brief(args) {
    const text = (typeof args === "string" ? args : JSON.stringify(args)).replace(/\s+/g, " ");
    return text.length > 48 ? `${text.slice(0, 47)}…` : text;
  }

  function label(row) {
    const node = make("div", "label");
    const lane = data.lanes[row.r] ?? { name: "", depth: 0 };
    const isMark = row.k === "turn" || row.k === "attempt" || !row.s && row.k !== "steer" && row.k !== "other";
    node.style.paddingLeft = `${12 + 14 * (row.k === "turn" ? 0 : lane.depth + (isMark ? 1 : 2))}px`;
    node.append(make("span", `g ${row.k === "steer" ? "c-steer" : row.c}`, GLYPH[row.k] ?? "·"));
    if (lane.name) node.append(make("span", "who", lane.name));
    node.append(make("span", "", row.l));
    if ((row.k === "call" || row.k === "child") && row.d?.args !== undefined) node.append(make("span", "args", brief(row.d.args)));
    if (row.w) node.append(make("span", `said ${row.c === "bad" || row.c === "stopped" ? row.c : ""}`, row.w));
    return node;
  }

  function draw(row, index) {
    const node = make("div", `row${row.k === "turn" ? " turn" : ""}${index === view.picked ? " picked" : ""}${row.n % 2 ? " even" : ""}`);
    node.style.top = `${index * ROW}px`;
    node.id = `row${index}`;
    node.dataset.index = index;
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", index === view.picked);
    node.setAttribute("aria-setsize", view.shown.length);
    node.setAttribute("aria-posinset", index + 1);
    node.setAttribute("aria-label", `${row.k.replace("_", " ")}: ${row.l}${row.w ? `, ${row.w}` : ""}${row.s && row.b != null ? `, ${took(row.b - row.a)}` : ""}`);
    const track = make("div", "track"), inner = make("div", "clip");
    const round = roundOf(row);
    if (round) inner.append(place(make("div", "round"), round.a, round.b));
    if (row.s) {
      const bar = place(make("div", `bar ${row.k} t-${row.c}`), row.a, row.e);
      inner.append(bar);
      const end = at(row.e);
      if (end > 0 && end < 101) {
        const text = make("span", "took", row.b == null && row.k !== "turn" ? "no end" : took(row.e - row.a));
        text.style.left = `${Math.max(0, end)}%`;
        track.append(text);
      }
    } else {
      const x = at(row.a);
      if (x >= -1 && x <= 101) {
        const dot = make("span", `dot ${row.k === "steer" ? "c-steer" : row.c}`, GLYPH[row.k] ?? "·");
        dot.style.left = `${x}%`;
        track.append(dot);
      }
    }
    track.prepend(inner);
    node.append(label(row), track);
    return node;
  }

  function place(node, a, b) {
    const left = clip(at(a)), right = clip(at(b));
    node.style.left = `${left}%`;
    node.style.width = `${Math.max(0, right - left)}%`;
    return node;
  }

  const LINES = { stop_requested: "", stop_escalated: "now", stop_observed: "seen", settled: "settled" };
  const lines = rows.filter((row) => row.k in LINES && row.r === 0);

  function marks(first, end) {
    const layer = make("div", "track lines");
    const top = first * ROW, height = Math.min(end, view.shown.length) * ROW - top;
    layer.style.top = `${top}px`;
    layer.style.bottom = "auto";
    layer.style.height = `${height}px`;
    for (const fold of folds) {
      const left = at(fold.a), right = at(fold.e);
      if (right < 0 || left > 100) continue;
      layer.append(place(make("div", "fold"), fold.a, fold.e));
    }
    const ranges = new Map();
    for (let i = first; i < Math.min(end, view.shown.length); i++) {
      const known = ranges.get(view.shown[i].t);
      if (known) known[1] = i; else ranges.set(view.shown[i].t, [i, i]);
    }
    for (const line of lines) {
      const x = at(line.a);
      if (x < 0 || x > 100 || !ranges.has(line.t)) continue;
      const own = ranges.get(line.t);
      const node = make("div", `mark ${LINES[line.k]}`);
      node.style.left = `${x}%`;
      node.style.top = `${(own[0] - first) * ROW}px`;
      node.style.height = `${(own[1] - own[0] + 1) * ROW}px`;
      layer.append(node);
    }
    return layer;
  }

  function ticks() {
    const nodes = [];
    const width = axis.clientWidth || 600, room = (view.to - view.from) * (90 / width);
    let step = 1;
    for (const unit of [1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7]) for (const times of [1, 2, 5]) if (step < room) step = unit * times;
    for (const longer of [6e7, 12e7, 3e8, 6e8, 18e8, 36e8, 72e8, 216e8, 864e8]) if (step < room) step = longer;
    let right = -Infinity;
    const put = (t, text) => {
      const x = at(t);
      if (x < -0.5 || x > 99 || x - right < 8000 / width) return;
      right = x;
      const node = make("span", "", text);
      node.style.left = `calc((100% - 70px) * ${x / 100})`;
      nodes.push(node);
    };
    data.turns.forEach((turn) => {
      if (turn.a == null || at(turn.b) < 0 || at(turn.a) > 100) return;
      put(turn.a, turn.id);
      let index = 0;
      for (let t = turn.a + step; t <= turn.b && index < 400; t += step, index++) {
        const fold = folds.find((fold) => t > fold.a && t < fold.e);
        if (fold) { t = turn.a + Math.floor((fold.e - turn.a) / step) * step; continue; }
        if (at(t) > 100) break;
        if (at(t) < 0) { const skip = Math.floor((view.from - flat(t)) / step); if (skip > 1) t += (skip - 1) * step; continue; }
        put(t, `+${took(t - turn.a)}`);
      }
    });
    axis.replaceChildren(...nodes);
  }

  let wanted = false;
  function paint() {
    wanted = false;
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW));
    const end = Math.min(view.shown.length, first + Math.ceil((scroll.clientHeight - 24) / ROW) + 1);
    fit(first, end);
    const from = Math.max(0, first - LINGER), to = Math.min(view.shown.length, end + LINGER);
    const nodes = [marks(first, end)];
    for (let i = from; i < to; i++) nodes.push(draw(view.shown[i], i));
    canvas.style.height = `${view.shown.length * ROW}px`;
    canvas.replaceChildren(...nodes);
    ticks();
    overview();
    if (view.picked >= 0) scroll.setAttribute("aria-activedescendant", `row${view.picked}`);
  }
  const ask = () => { if (!wanted) { wanted = true; requestAnimationFrame(paint); } };

  // The whole session, small.
  let still = null;
  function overview() {
    const width = map.clientWidth, height = map.clientHeight, dense = devicePixelRatio || 1;
    if (!width) return;
    const pen = map.getContext("2d", { willReadFrequently: true });
    const px = (x) => ((x - whole[0]) / Math.max(1, whole[1] - whole[0])) * width;
    if (!still || still.width !== Math.round(width * dense)) {
      map.width = Math.round(width * dense);
      map.height = Math.round(height * dense);
      pen.scale(dense, dense);
      const style = getComputedStyle(document.documentElement), ink = (name) => style.getPropertyValue(name);
      const LANES = { model: 4, call: 14, child: 22, approval: 30, retry: 4 };
      for (const row of rows) {
        const x = px(flat(row.a)), y = LANES[row.k];
        if (y !== undefined) {
          pen.fillStyle = ink(row.c === "bad" ? "--bad" : row.c === "stopped" ? "--stopped" : `--${row.k}`);
          pen.fillRect(x, y, Math.max(1, px(flat(row.e)) - x), 7);
        } else if (row.k === "turn") {
          pen.fillStyle = ink("--dim");
          pen.fillRect(x, 0, 1, height);
        } else if (row.k === "stop_requested" || row.k === "stop_escalated") {
          pen.fillStyle = ink("--bad");
          pen.fillRect(x, 0, 2, height);
        }
      }
      still = pen.getImageData(0, 0, map.width, map.height);
    } else {
      pen.putImageData(still, 0, 0);
    }
    const style = getComputedStyle(document.documentElement);
    pen.strokeStyle = style.getPropertyValue("--focus");
    pen.lineWidth = 2;
    const left = Math.max(1, px(view.from)), right = Math.min(width - 1, px(view.to));
    pen.strokeRect(left, 1, Math.max(3, right - left), height - 2);
  }
  function jump(event) {
    const box = map.getBoundingClientRect();
    const x = whole[0] + ((event.clientX - box.left) / box.width) * (whole[1] - whole[0]);
    let best = 0;
    view.shown.forEach((row, index) => { if (row.k !== "turn" && row.k !== "attempt" && flat(row.a) <= x) best = index; });
    scroll.scrollTop = best * ROW - scroll.clientHeight / 2;
    ask();
  }
  map.addEventListener("pointerdown", (event) => { map.setPointerCapture(event.pointerId); jump(event); });
  map.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });

  // Details.
  const clock = (t) => new Date(data.zero + t / 1e3).toISOString().replace("T", " ").replace("Z", " UTC");
  function detail(row) {
    const head = make("div", "head"), close = make("button", "", "✕");
    close.setAttribute("aria-label", "close details");
    close.addEventListener("click", () => { hide(); scroll.focus(); });
    head.append(make("h2", "", row.l), close);
    const list = make("dl"), blocks = [];
    const put = (name, value) => {
      if (value === undefined || value === null || value === "" || Array.isArray(value) && !value.length) return;
      const text = typeof value === "string" ? value : typeof value === "object" ? JSON.stringify(value, null, 1) : String(value);
      if (text.length > 70 || text.includes("\n")) { blocks.push(make("h3", "", name), make("pre", "", text)); return; }
      list.append(make("dt", "", name), make("dd", "", text));
    };
    const lane = data.lanes[row.r];
    put("kind", row.k.replace("_", " "));
    put("turn", data.turns[row.t]?.id);
    if (lane?.name) put("run of", lane.name);
    put("round", row.n);
    put("at", clock(row.a));
    const turn = data.turns[row.t];
    if (turn && row.a >= turn.a) put("in its turn", `+${took(row.a - turn.a)}`);
    if (row.s) put("took", row.b == null ? "no recorded end" : took(row.b - row.a));
    put("record", row.p);
    if (row.c !== "plain" || row.w) put("how it went", row.w);
    const { account, args, output, text, ...more } = row.d ?? {};
    for (const [name, value] of Object.entries(more)) {
      if (name === "usage" || name === "usage_total") put(name.replace("_", " "), `${value.input} in (${value.cached_input} cached), ${value.output} out (${value.reasoning} reasoning), ${value.source}`);
      else put(NAMES[name] ?? name.replaceAll("_", " "), value);
    }
    const full = [["arguments", args], ["message", text], ["output", output], ["receipt", account]];
    for (const [name, value] of full) {
      if (value === undefined || value === null || value === "") continue;
      blocks.push(make("h3", "", name), make("pre", "", typeof value === "string" ? value : JSON.stringify(value, null, 2)));
    }
    side.replaceChildren(head, list, ...blocks);
    side.classList.add("shown");
    side.scrollTop = 0;
  }
  function hide() { side.classList.remove("shown"); ask(); }
  function pick(index, open) {
    if (!view.shown.length) return;
    view.picked = Math.max(0, Math.min(view.shown.length - 1, index));
    const top = view.picked * ROW, room = scroll.clientHeight - 24;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    if (top + ROW > scroll.scrollTop + room) scroll.scrollTop = top + ROW - room;
    if (open || side.classList.contains("shown")) detail(view.shown[view.picked]);
    ask();
  }

  const rowOf = (event) => event.target.closest?.(".row");
  // What is under the pointer has changed, or is beside it now: the tip waits for the next move.
  const untip = () => { tip.style.display = "none"; };
  scroll.addEventListener("scroll", () => { untip(); ask(); });
  scroll.addEventListener("click", (event) => { const row = rowOf(event); if (row) { untip(); pick(Number(row.dataset.index), true); } });
  scroll.addEventListener("pointermove", (event) => {
    const node = rowOf(event);
    if (!node) { untip(); return; }
    const row = view.shown[Number(node.dataset.index)];
    const times = `${clock(row.a).slice(11, 23)}${row.s ? `, ${row.b == null ? "no recorded end" : took(row.b - row.a)}` : ""}`;
    tip.replaceChildren(make("b", "", row.l), make("div", row.c === "plain" ? "dim" : row.c, row.w), make("div", "dim", times));
    tip.style.display = "block";
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18}px`;
  });
  scroll.addEventListener("pointerleave", untip);
  scroll.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(scroll.clientHeight / ROW) - 2), now = view.picked < 0 ? Math.floor(scroll.scrollTop / ROW) - 1 : view.picked;
    const to = { ArrowDown: now + 1, j: now + 1, ArrowUp: now - 1, k: now - 1, PageDown: now + page, PageUp: now - page, Home: 0, End: view.shown.length - 1 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (to !== undefined) pick(to, false);
    else if (event.key === "Enter" || event.key === " ") pick(Math.max(0, now), true);
    else if (event.key === "Escape") hide();
    else if (event.key === "s") {
      const next = view.shown.findIndex((row, index) => index > now && row.k.startsWith("stop_"));
      if (next >= 0) pick(next, true);
    } else return;
    event.preventDefault();
  });
  side.addEventListener("keydown", (event) => { if (event.key === "Escape") { hide(); scroll.focus(); } });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target.tagName !== "INPUT") { event.preventDefault(); by("find").focus(); }
  });
  for (const button of document.querySelectorAll("[data-mode]")) {
    button.addEventListener("click", () => {
      view.mode = button.dataset.mode;
      press();
      ask();
    });
  }
  function press() {
    for (const button of document.querySelectorAll("[data-mode]")) button.setAttribute("aria-pressed", button.dataset.mode === view.mode);
  }
  by("as-text").addEventListener("click", () => {
    const on = document.documentElement.classList.toggle("as-text");
    by("as-text").setAttribute("aria-pressed", on);
    ask();
  });
  by("find").addEventListener("input", (event) => {
    const words = event.target.value.trim().toLowerCase();
    const hay = (row) => (row.hay ??= `${row.k} ${row.l} ${row.w} ${data.lanes[row.r]?.name ?? ""} ${JSON.stringify(row.d ?? {})}`.toLowerCase());
    view.shown = words ? rows.filter((row) => hay(row).includes(words)) : rows;
    view.picked = -1;
    scroll.scrollTop = 0;
    by("found").textContent = words ? `${view.shown.length} of ${rows.length}` : "";
    ask();
  });
  new ResizeObserver(ask).observe(scroll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { still = null; ask(); });
  document.documentElement.classList.add("ready");
  by("app").append(by("text"));
  press();
  paint();
})();
