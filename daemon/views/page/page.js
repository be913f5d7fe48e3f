// The page: one connection to the broker, a table of the fleet, one device closely. Texts from outside become text nodes.
"use strict";

const settings = window.SPEAKD ?? {};
const prefix = settings.prefix ?? "speakd";
const fleet = new Fleet(prefix);
const KINDS = ["status", "settings", "telemetry", "alert", "event"];
const MOST_ROWS = 500;
const REDRAW_MS = 250;
const $ = (id) => document.getElementById(id);

let client = null;
let chosen = null; // a device's name
let asked = null; // what was last sent to be spoken: { id, device }
let dirty = true;

// Connection ----------------------------------------------------------------------------------------------------------

function connect(url, username, password) {
  if (client !== null) client.end(true);
  tell("connecting", "notice");
  const options = { clientId: "speakd-page-" + crypto.getRandomValues(new Uint32Array(2)).join(""), reconnectPeriod: 2000, connectTimeout: 8000 };
  if (username) Object.assign(options, { username, password });
  try {
    client = mqtt.connect(url, options);
  } catch (error) {
    client = null;
    tell(clean(error.message), "critical");
    return;
  }
  let problem = ""; // told with every failed attempt, until one succeeds
  client.on("connect", () => {
    problem = "";
    tell("connected", "well");
    $("broker").open = false;
    client.subscribe(KINDS.map((kind) => `${prefix}/+/${kind}`), { qos: 1 }, (error, granted) => {
      if (error || list(granted).some((one) => one.qos >= 128)) tell("the broker lets us hear nothing", "critical");
    });
  });
  client.on("close", () => tell(problem || "no connection", "critical"));
  client.on("error", (error) => {
    problem = clean(error.message);
    tell(problem, "critical");
    $("broker").open = true; // a name and a password may help
  });
  client.on("message", (topic, payload) => {
    fleet.take(topic, payload.toString(), Date.now() / 1000);
    dirty = true;
  });
}

function tell(words, rank) {
  const link = $("link");
  link.textContent = words;
  link.className = "pill " + rank;
}

// Drawing -------------------------------------------------------------------------------------------------------------

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function shown(value, digits = 0, unit = "") {
  const found = number(value);
  return found === null ? "–" : found.toFixed(digits) + unit;
}

function watts(telemetry) {
  const power = number(telemetry?.power_mw);
  return power === null ? null : power / 1000;
}

function drawFleet(now) {
  const wanted = $("filter").value.toLowerCase();
  const all = fleet.worstFirst(now);
  const matching = all.filter(([device, troubles]) =>
    !wanted || device.name.toLowerCase().includes(wanted) || troubles.some((one) => one[1].toLowerCase().includes(wanted)));
  const inTrouble = all.filter((one) => one[1].length && one[1][0][0] >= 2).length;
  const left = matching.length > MOST_ROWS ? `, the worst ${MOST_ROWS} shown` : "";
  $("counts").textContent = `${all.length} devices, ${inTrouble} in trouble${left}`;
  $("nobody").hidden = all.length > 0;
  $("rows").replaceChildren(...matching.slice(0, MOST_ROWS).map(([device, troubles]) => row(device, troubles)));
}

function row(device, troubles) {
  const rank = RANKS[troubles.length ? troubles[0][0] : 0];
  const line = element("tr");
  line.tabIndex = 0;
  line.dataset.device = device.name;
  if (device.name === chosen) line.className = "chosen";
  const state = element("td");
  state.append(element("span", device.state, "pill " + rank));
  line.append(
    element("td", clean(device.name)), state, element("td", clean(device.telemetry?.mode ?? "–")),
    element("td", shown(device.p95), "n"), element("td", shown(device.telemetry?.queue), "n"),
    element("td", shown(device.hottest, 1), "n"), element("td", shown(watts(device.telemetry), 1), "n"),
    element("td", troubles.filter((one) => one[0] === troubles[0][0]).map((one) => one[1]).join("; ")),
  );
  return line;
}

function drawDevice(now) {
  const device = fleet.devices.get(chosen);
  $("device").hidden = device === undefined;
  if (device === undefined) return;
  const troubles = device.troubles(now);
  const telemetry = device.telemetry;
  $("name").textContent = clean(device.name);
  $("state").textContent = device.state;
  $("state").className = "pill " + RANKS[troubles.length ? troubles[0][0] : 0];
  const status = device.status ?? {};
  const about = [status.voice, status.backend, status.precision, status.output, status.version && "speakd " + status.version];
  const mode = telemetry?.mode ? `mode ${telemetry.mode}: ${telemetry.reason ?? ""}` : "";
  $("about").textContent = [...about, mode].filter(Boolean).map(clean).join(" · ");
  $("alerts").replaceChildren(...troubles.map(([rank, words]) => element("li", words, RANKS[rank])));
  drawStages(telemetry?.ttfa_ms);
  drawFigures(telemetry, device);
  $("events").replaceChildren(...device.events.map((event) => element("li", described(event))));
  if (asked !== null && asked.device === device.name) drawAnswer(device);
  draw("latency", [device.latency.times, device.latency.first, device.latency.p95]);
  draw("temperature", [device.warmth.times, device.warmth.hottest]);
}

const STAGES = {
  whole: "whole", queue: "in the queue", response: "from its turn", text: "· text", acoustic: "· acoustic",
  window: "· first window", sink: "· output",
};

function drawStages(ttfa) {
  $("stages").tBodies[0].replaceChildren(...Object.entries(STAGES).map(([stage, words]) => {
    const line = element("tr");
    line.append(element("td", words), ...["p50", "p95", "p99"].map((share) => element("td", shown(ttfa?.[stage]?.[share], 1), "n")));
    return line;
  }));
}

function drawFigures(telemetry, device) {
  const memory = telemetry?.memory_mb ?? {};
  const energy = number(telemetry?.energy_mj_per_s);
  const figures = [
    ["said, of which kept phrases", `${shown(telemetry?.utterances)}, ${shown(telemetry?.cache_hits)}`],
    ["failed, rejected", `${shown(telemetry?.failed)}, ${shown(telemetry?.rejected)}`],
    ["gaps, stream drops", `${shown(telemetry?.underruns)}, ${shown(telemetry?.encoder_drops)}`],
    ["restarts", shown(telemetry?.restarts)],
    ["computing per time of speech", shown(telemetry?.rtf, 3)],
    ["memory: process, GPU", `${shown(memory.process, 0, " MiB")}, ${shown(memory.gpu_used, 0, " MiB")}`],
    ["buffers in use", `${shown(memory.pool_used)} of ${shown(memory.pool, 0, " MiB")}`],
    ["board, per second of speech", `${shown(watts(telemetry), 1, " W")}, ${shown(energy === null ? null : energy / 1000, 1, " J")}`],
    ["volume", shown(device.settings?.volume, 2) + (device.settings?.muted ? " (muted)" : "") + (device.settings?.paused ? " (paused)" : "")],
    ["the voice's own rating, of 5", shown(telemetry?.self_check?.mos, 2)],
  ];
  $("figures").tBodies[0].replaceChildren(...figures.map(([name, value]) => {
    const line = element("tr");
    line.append(element("td", name), element("td", value, "n"));
    return line;
  }));
}

function described(event) {
  const { event: kind, time, id, request, ...more } = event;
  const at = new Date(time);
  const when = Number.isNaN(at.getTime()) ? "" : at.toLocaleTimeString() + " ";
  const details = Object.entries(more).filter((one) => typeof one[1] !== "object").map(([key, value]) => `${key} ${value}`);
  return clean(`${when}${id ?? request ?? ""} ${kind} ${details.join(", ")}`);
}

function drawAnswer(device) {
  const last = device.events.find((event) => event.id === asked.id);
  if (last === undefined) return;
  const words = { accepted: "waits", started: "speaks", synthesized: "speaks", finished: "was said" }[last.event] ?? last.event;
  const first = device.events.find((event) => event.id === asked.id && event.event === "started");
  const after = first && number(first.ttfa_ms) !== null ? `, first sound after ${shown(first.ttfa_ms)} ms` : "";
  $("answer").textContent = clean(words + (last.reason ? ": " + last.reason : "") + after);
  $("answer").className = FINAL.has(last.event) || last.event === "rejected" ? (last.event === "finished" ? "well" : "critical") : "notice";
}

// Charts --------------------------------------------------------------------------------------------------------------

const charts = {};

function draw(name, data) {
  const place = $(name);
  const style = getComputedStyle(document.documentElement);
  const [accent, warning, soft, line] = ["--accent", "--warning", "--soft", "--line"].map((one) => style.getPropertyValue(one).trim());
  const width = place.clientWidth;
  if (!width) return;
  if (charts[name] === undefined || charts[name].width !== width || charts[name].of !== chosen) {
    charts[name]?.plot.destroy();
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const curves = name === "latency"
      ? [{ label: "each utterance", stroke: accent, paths: () => null, points: { show: true, size: 5, fill: accent } },
         { label: "p95 of the last hour", stroke: warning, width: 2, spanGaps: true, points: { show: false } }]
      : [{ label: "hottest zone", stroke: warning, width: 2, points: { show: false }, fill: warning + "22" }];
    const options = {
      width, height: 170, legend: { show: false }, padding: [8, 12, 0, 12], series: [{}, ...curves], axes: [axis, { ...axis, size: 46 }], cursor: { drag: { x: true, y: false } },
      scales: { y: { range: (_plot, low, high) => (low === null ? [0, 1] : name === "latency" ? [0, high * 1.1] : [low - 3, high + 3]) } },
    };
    place.replaceChildren();
    charts[name] = { width, of: chosen, plot: new uPlot(options, data, place) };
  } else {
    charts[name].plot.setData(data);
  }
}

// What people do ------------------------------------------------------------------------------------------------------

function choose(event) {
  const line = event.target.closest("tr[data-device]");
  if (line === null) return;
  chosen = line.dataset.device;
  $("answer").textContent = "";
  dirty = true;
}

$("rows").addEventListener("click", choose);
$("rows").addEventListener("keydown", (event) => { if (event.key === "Enter") choose(event); });
$("filter").addEventListener("input", () => { dirty = true; });
window.addEventListener("resize", () => { dirty = true; });

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  connect($("url").value, $("user").value, $("password").value);
});

$("speak").addEventListener("submit", (event) => {
  event.preventDefault();
  if (client === null || !client.connected) {
    $("answer").textContent = "no connection to the broker";
    return;
  }
  asked = { id: "page-" + crypto.getRandomValues(new Uint32Array(2)).join(""), device: chosen };
  const command = { id: asked.id, text: $("text").value, priority: $("priority").value, volume: Number($("volume").value) };
  client.publish(`${prefix}/${chosen}/speak`, JSON.stringify(command), { qos: 1 });
  $("answer").textContent = "sent";
  $("answer").className = "notice";
});

let drawnAt = 0;
setInterval(() => {
  const now = Date.now() / 1000;
  if (!dirty && now - drawnAt < 5) return; // devices fall silent without a message
  if (document.activeElement?.closest?.("#rows") && !dirty) return;
  const focused = document.activeElement?.dataset?.device;
  dirty = false;
  drawnAt = now;
  drawFleet(now);
  drawDevice(now);
  if (focused) [...$("rows").children].find((one) => one.dataset.device === focused)?.focus();
}, REDRAW_MS);

$("url").value = settings.broker ?? "";
if (settings.broker) connect(settings.broker);
else $("broker").open = true;
