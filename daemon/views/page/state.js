// What is known of the devices, and how bad that is. Nothing here touches the page; the same rules as `speakd fleet`.
"use strict";

const RANKS = ["well", "notice", "warning", "critical", "gone"];
const CRITICAL_ALERTS = new Set(["ttfa_p99", "throttling", "card_lost", "self_check"]);
const FINAL = new Set(["finished", "cancelled", "expired", "superseded", "failed"]);
const HISTORY = 720; // points of a chart
const MOST_EVENTS = 60;
const MOST_DEVICES = 10000; // whoever can publish on the broker can invent devices
const LONGEST = 300; // characters of a text from outside
const USUAL_S = 15;
const CLOCKS_S = 120; // by which a device's clock may be behind ours without being thought silent
const LATE = 4; // intervals of telemetry

// One line of what came from outside: no controls, nothing that turns the direction of writing around.
function clean(value) {
  return String(value).slice(0, LONGEST).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, " ");
}

function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function entries(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [];
}

function list(value) {
  return Array.isArray(value) ? value : [];
}

class Device {
  constructor(name) {
    this.name = name;
    this.status = null;
    this.telemetry = null;
    this.settings = null;
    this.alerts = new Map();
    this.events = [];
    this.heardAt = null;
    this.unread = "";
    this.latency = { times: [], first: [], p95: [] };
    this.warmth = { times: [], hottest: [] };
  }

  take(kind, payload, now) {
    try {
      const said = JSON.parse(payload);
      if (said === null || typeof said !== "object") throw new TypeError("no object");
      if (kind === "status") this.status = said;
      else if (kind === "settings") this.settings = said;
      else if (kind === "telemetry") this.takeTelemetry(said, now);
      else if (kind === "alert") this.takeAlert(said);
      else if (kind === "event") this.takeEvent(said, now);
      this.unread = "";
    } catch {
      this.unread = `its ${kind} cannot be read: is it another version of speakd?`;
    }
  }

  takeTelemetry(said, now) {
    this.heardAt = now;
    this.telemetry = said;
    const raised = new Set(list(said.alerts));
    for (const name of this.alerts.keys()) if (!raised.has(name)) this.alerts.delete(name);
    const at = Date.parse(said.time) / 1000 || now;
    if (this.p95 !== null) push(this.latency, at, { first: null, p95: this.p95 });
    if (this.hottest !== null) push(this.warmth, at, { hottest: this.hottest });
  }

  takeAlert(said) {
    if (said.state === "raised") this.alerts.set(String(said.alert), said);
    else this.alerts.delete(String(said.alert));
  }

  takeEvent(said, now) {
    if (said.event === "word" || said.event === "queue") return;
    this.events.unshift(said);
    this.events.length = Math.min(this.events.length, MOST_EVENTS);
    if (said.event === "started" && number(said.ttfa_ms) !== null) {
      push(this.latency, Date.parse(said.time) / 1000 || now, { first: said.ttfa_ms, p95: null });
    }
  }

  get p95() {
    return number(this.telemetry?.ttfa_ms?.response?.p95);
  }

  get hottest() {
    const found = entries(this.telemetry?.temperatures_c).map((one) => number(one[1])).filter((one) => one !== null);
    return found.length ? Math.max(...found) : null;
  }

  get state() {
    const state = clean(this.status?.state ?? "?");
    return state === "online" && this.telemetry?.speaking === true ? "speaking" : state;
  }

  // Gives everything that is wrong: [rank, words].
  troubles(now) {
    const found = [];
    if (this.unread) found.push([2, this.unread]);
    const status = this.status;
    if (status === null) {
      if (this.telemetry === null) found.push([1, "it has told no status"]);
    } else if (status.state !== "online") {
      found.push([status.state === "offline" ? 4 : 1, clean(status.state)]);
    } else {
      for (const [what, said] of [["sound", status.audio], ["commands", status.commands], ["connection", status.connection]]) {
        if (said !== undefined && said !== null && said !== "ok") found.push([3, clean(`${what}: ${said}`)]);
      }
      const longest = LATE * (number(this.telemetry?.interval_s) ?? USUAL_S);
      let silent = this.heardAt === null ? 0 : now - this.heardAt;
      if (silent <= longest) silent = now - (Date.parse(this.telemetry?.time) / 1000 || now) - CLOCKS_S; // kept by the broker
      if (silent > longest) found.push([2, `no telemetry for ${Math.round(silent)} s`]);
    }
    for (const alert of this.alerts.values()) {
      found.push([alert.severity === "critical" ? 3 : 2, clean(`${alert.alert}: ${alert.reason}`)]);
    }
    for (const name of list(this.telemetry?.alerts)) {
      if (!this.alerts.has(String(name))) found.push([CRITICAL_ALERTS.has(name) ? 3 : 2, clean(name)]);
    }
    if (![undefined, null, "ok"].includes(status?.power)) found.push([1, clean(`the board's clocks do not follow: ${status.power}`)]);
    for (const [source, reason] of entries(this.telemetry?.degraded)) found.push([1, clean(String(reason).startsWith(source) ? reason : `${source}: ${reason}`)]);
    return found.sort((a, b) => b[0] - a[0]);
  }
}

function push(series, at, values) {
  const last = series.times.at(-1);
  series.times.push(last !== undefined && at < last ? last : at); // a chart's time never runs backwards
  for (const [name, value] of Object.entries(values)) series[name].push(value);
  for (const one of Object.values(series)) if (one.length > HISTORY) one.shift();
}

class Fleet {
  constructor(prefix) {
    this.prefix = prefix + "/";
    this.devices = new Map();
  }

  take(topic, payload, now) {
    if (!topic.startsWith(this.prefix)) return;
    const [name, kind, ...more] = topic.slice(this.prefix.length).split("/");
    if (more.length || !kind) return;
    if (!this.devices.has(name)) {
      if (this.devices.size >= MOST_DEVICES) return;
      this.devices.set(name, new Device(name));
    }
    this.devices.get(name).take(kind, payload, now);
  }

  // Gives [device, its troubles], those in most trouble first, then the slower ones.
  worstFirst(now) {
    const all = [...this.devices.values()].map((device) => [device, device.troubles(now)]);
    const rank = (troubles) => (troubles.length ? troubles[0][0] : 0);
    return all.sort((a, b) => rank(b[1]) - rank(a[1]) || (b[0].p95 ?? 0) - (a[0].p95 ?? 0) || (a[0].name < b[0].name ? -1 : 1));
  }
}
