// The HTML report as a reader uses it. Pages are made by tests/it/browser.rs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import axe from "axe-core";
import { colours, drawn, inView, launch, open, view, wheel } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** A test that fails on any fault of its page. */
function on(file, name, options, check) {
  test(`${file}: ${name}`, { timeout: 180000 }, async () => {
    const page = await open(browser, file, options);
    await check(page);
    assert.deepEqual(page.faults, []);
    assert.deepEqual(await page.evaluate(() => window.attacks), []);
    await page.context().close();
  });
}

const ids = (page) => page.$$eval("tr.site", (rows) => rows.map((row) => row.id.replace("site-", "")));
const text = (page, selector) => page.$eval(selector, (node) => node.textContent);

on("train_mlp.html", "says what the table says", {}, async (page) => {
  assert.match(await text(page, "h1"), /^4 avoidable lines together cost [\d.]+\s(µs|ms) of an iteration of [\d.]+\s(µs|ms): [\d.]+\s% \(likely .* to .*%\)$/);
  assert.match(await text(page, "#lines"), /without these waits the (CPU|GPU) limits/);
  assert.deepEqual(await ids(page), ["S2", "S6", "S5", "S3", "S4", "S1", "S7"]);
  assert.equal(await text(page, "#site-S2 .file"), "train_mlp.py:18");
  assert.match(await text(page, "#site-S2 .verdict"), /^avoidable \d+ %$/);
  assert.equal(await page.title(), "train_mlp_shapes.sqlite · sync-report");
});

on("train_mlp.html", "draws the timeline", {}, async (page) => {
  const found = await colours(page);
  assert.ok(found.length > 20, `${found.length} colours`);
  const background = found[0][1] / found.reduce((sum, [, pixels]) => sum + pixels, 0);
  assert.ok(background < 0.9, `${background} of it is empty`);
  const hex = (colour) => found.find(([one]) => one === colour)?.[1] ?? 0;
  assert.ok(hex(0xe2571e) > 200, "false waits and their drains");
  assert.equal(await page.$eval("canvas", (canvas) => `${canvas.clientWidth}px` === canvas.style.width), true, "as wide as it was drawn");
  const shot = await page.screenshot();
  assert.ok(shot.length > 30000, `a screenshot of ${shot.length} bytes`);
});

on("train_mlp.html", "sorts by every column", {}, async (page) => {
  const click = (label) => page.click(`table.sites thead button:has-text("${label}")`);
  const sorted = () => page.$eval("table.sites [aria-sort]", (head) => [head.textContent, head.getAttribute("aria-sort")]);
  const numbers = (column) => page.$$eval(`tr.site .col-${column}`, (cells) => cells.map((cell) => {
    const [, number, unit] = /([\d.,]+)\s*(ns|µs|ms|s)?/.exec(cell.textContent);
    return Number(number.replace(",", "")) * { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 }[unit ?? "ns"];
  }));
  for (const [label, column] of [["Waits", "waits"], ["Blocked", "blocked"], ["p99", "p99"], ["Idle after", "drain"]]) {
    await click(label);
    assert.deepEqual(await sorted(), [label, "descending"]);
    const down = await numbers(column);
    assert.deepEqual(down, [...down].sort((a, b) => b - a));
    await click(label);
    assert.deepEqual(await sorted(), [label, "ascending"]);
    const up = await numbers(column);
    assert.deepEqual(up, [...up].sort((a, b) => a - b));
  }
  await click("Where");
  assert.deepEqual(await ids(page), ["S2", "S3", "S4", "S5", "S6", "S1", "S7"]);
  await click("Verdict");
  assert.equal((await ids(page)).pop(), "S4", "the needed one comes last");
  await click("Saves");
  assert.equal((await ids(page))[0], "S2");
  await click("Site");
  assert.deepEqual(await ids(page), ["S1", "S2", "S3", "S4", "S5", "S6", "S7"]);
});

on("train_mlp.html", "filters by text and class", {}, async (page) => {
  await page.fill('input[aria-label="Filter the sites"]', "logging");
  assert.deepEqual(await ids(page), ["S5"]);
  assert.equal(await text(page, ".filters [role=status]"), "1 of 7 sites");
  await page.fill('input[aria-label="Filter the sites"]', "nothing has this");
  assert.equal(await text(page, "td.none"), "No site passes the filter.");
  await page.fill('input[aria-label="Filter the sites"]', "");
  await page.click("label.chip.false");
  assert.deepEqual(await ids(page), ["S4"]);
  await page.click("label.chip.false");
  assert.equal((await ids(page)).length, 7);
});

on("train_mlp.html", "opens a site with all that is known of it", {}, async (page) => {
  await page.click("#site-S2 .col-verdict");
  const detail = await text(page, "#detail-S2");
  for (const part of ["Source", "Why it is avoidable", "Stack, most recent call last", "What to do", "mind", "Examples", "Cost", "Waits by blocked time", "Blocked time of each iteration"]) {
    assert.ok(detail.includes(part), part);
  }
  assert.equal(await text(page, "#detail-S2 .line.marked code"), '    x = x.to("cuda")');
  assert.equal(await page.$$eval("#detail-S2 .stack .yours", (list) => list.length), 3);
  assert.equal(await page.getAttribute("#site-S2 button.open", "aria-expanded"), "true");
  await page.click("#site-S2 button.open");
  assert.equal(await page.$("#detail-S2"), null);
  assert.equal(await page.getAttribute("#site-S2 button.open", "aria-expanded"), "false");
});

on("train_mlp.html", "shows an example in the timeline", { hash: "#open=S2" }, async (page) => {
  const whole = await view(page);
  const last = "#detail-S2 tr:last-child";
  const example = await text(page, `${last} button.jump`);
  const blocked = (await text(page, `${last} td:has(button.jump) + td`)).replace("\u00a0", " ");
  await page.click(`${last} button.jump`);
  const near = await view(page);
  assert.ok(near.length < whole.length / 50, "nearer");
  assert.equal(near.selected, "S2");
  const spoken = await text(page, ".unseen[role=status]:not(.count)");
  assert.ok(spoken.includes(`blocked ${blocked}, from ${example}`), spoken);
  // The clock of the export starts elsewhere than the drawing.
  const clock = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).timelines[0].start_ns);
  const at = Math.round(parseFloat(example) * 1e9) - clock;
  assert.ok(near.from <= at && at <= near.to, `${near.from} ${at} ${near.to}`);
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "CANVAS");
});

on("train_mlp.html", "tells time by the clock of the export", { hash: "#open=S2" }, async (page) => {
  await page.click("#detail-S2 button.jump");
  const example = await text(page, "#detail-S2 button.jump");
  const box = await inView(page);
  for (let y = box.height - 10; y > 60; y -= 4) {
    await page.mouse.move(box.x + 148 + (box.width - 148) / 2, box.y + y);
    if (await page.$eval(".tip", (tip) => !tip.hidden && tip.textContent.startsWith("S2"))) break;
  }
  assert.ok((await text(page, ".tip")).includes(`from ${example}`), await text(page, ".tip"));
  const [, from] = /shown, from ([\d.]+) s/.exec(await text(page, ".status"));
  assert.ok(parseFloat(from) < parseFloat(example) && parseFloat(example) < parseFloat(from) + 1);
});

on("ranks.html", "says of which zero a time is where captures share an axis", { hash: "#open=S1" }, async (page) => {
  const example = await text(page, "#detail-S1 button.jump");
  await page.click("#detail-S1 button.jump");
  assert.match(await text(page, ".unseen[role=status]:not(.count)"), new RegExp(`from [\\d.]+ .s after the start \\(${example} in the export\\)`));
});

on("train_mlp.html", "zooms with the wheel once it is chosen, and not before", {}, async (page) => {
  const whole = await view(page);
  // The page is at its top: it has nowhere to scroll to.
  await page.hover("canvas", { position: { x: 600, y: 60 } });
  await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
  await wheel(page, -200);
  assert.equal((await view(page)).length, whole.length, "the page scrolls");
  const box = await inView(page);
  const x = box.x + 600;
  await page.mouse.move(x, box.y + 60);
  await page.focus("canvas");
  await wheel(page, -200);
  const near = await view(page);
  assert.ok(near.length < whole.length * 0.6, "nearer");
  await page.mouse.move(x, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(x - 100, box.y + 100, { steps: 4 });
  await page.mouse.up();
  const moved = await view(page);
  assert.ok(moved.from > near.from && Math.abs(moved.length - near.length) < 2, "dragged");
  await wheel(page, 5000);
  await wheel(page, 5000);
  assert.equal((await view(page)).length, whole.length, "never more than there is");
});

on("train_mlp.html", "moves with keys", {}, async (page) => {
  await page.focus("canvas");
  const whole = await view(page);
  const press = async (key) => {
    await page.keyboard.press(key);
    return view(page);
  };
  const near = await press("w");
  assert.ok(near.length < whole.length);
  assert.ok((await press("+")).length < near.length);
  const far = await press("s");
  assert.ok(Math.abs(far.length - near.length) < 2);
  assert.ok((await press("d")).from > far.from);
  assert.ok(Math.abs((await press("ArrowLeft")).from - far.from) < 2);
  for (let i = 0; i < 60; i++) await page.keyboard.press("w");
  assert.ok((await view(page)).length >= 199, "not nearer than there is something to see");
  assert.deepEqual([(await press("Home")).from, (await view(page)).to], [whole.from, whole.to]);
  const next = await press("n");
  assert.match(next.selected, /^S\d$/);
  await page.keyboard.press("Enter");
  assert.ok(await page.$(`#detail-${next.selected}`), "Enter opens the selected wait's site");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), `${next.selected} details`);
});

on("train_mlp.html", "opens the site of a wait that is clicked", { hash: "#open=S2" }, async (page) => {
  await page.click("#detail-S2 button.jump");
  await page.focus("canvas");
  await page.keyboard.press("Escape");
  assert.equal((await view(page)).selected, "");
  await page.click("#site-S2 button.open");
  const box = await inView(page);
  const rows = await page.evaluate(() => document.querySelector("canvas").clientHeight);
  // The wait is in the middle of the view, in the main thread's lane: looked for from below.
  for (let y = rows - 40; y > 60; y -= 4) {
    await page.mouse.move(box.x + 148 + (box.width - 148) / 2, box.y + y);
    if (await page.$eval(".tip", (tip) => !tip.hidden && tip.textContent.startsWith("S"))) break;
  }
  assert.match(await text(page, ".tip"), /^S2, avoidable: train_mlp.py:18 step/);
  await page.mouse.down();
  await page.mouse.up();
  assert.ok(await page.$("#detail-S2"));
});

on("train_mlp.html", "finds kernels, calls and sites", {}, async (page) => {
  const input = 'input[aria-label^="Find a kernel"]';
  const found = () => text(page, ".search .count");
  await page.fill(input, "gemm");
  assert.match(await found(), /^[\d,]+ matches$/);
  const whole = await view(page);
  await page.press(input, "Enter");
  const first = await view(page);
  assert.ok(first.length < whole.length);
  await page.press(input, "Enter");
  assert.ok((await view(page)).from > first.from);
  await page.press(input, "Shift+Enter");
  assert.equal((await view(page)).from, first.from);
  await page.focus("canvas");
  await page.keyboard.press("Home");
  await page.fill(input, "s5");
  await drawn(page);
  assert.equal(await found(), "90 matches");
  assert.ok((await colours(page)).some(([colour]) => colour === 0xb3009e), "marked");
  await page.fill(input, "train_mlp.py:18");
  assert.equal(await found(), "30 matches");
  await page.fill(input, "no such thing");
  assert.equal(await found(), "no match");
});

on("train_mlp.html", "keeps what is open and shown in the address", {}, async (page) => {
  await page.click("#site-S4 button.open");
  await page.focus("canvas");
  await page.keyboard.press("w");
  const before = await view(page);
  await page.waitForFunction(() => location.hash.includes("view=") && location.hash.includes("open=S4"));
  await page.reload();
  await page.waitForFunction(() => document.documentElement.dataset.ready === "yes");
  assert.deepEqual(await view(page), { ...before, selected: undefined });
  assert.ok(await page.$("#detail-S4"));
});

for (const [scheme, ground] of [["light", "rgb(247, 247, 245)"], ["dark", "rgb(18, 21, 23)"]]) {
  on("train_mlp.html", `is ${scheme} as the system says, and can be turned`, { scheme }, async (page) => {
    const body = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(await body(), ground);
    const [[before]] = await colours(page);
    await page.click("#theme");
    await drawn(page);
    assert.notEqual(await body(), ground);
    assert.notEqual((await colours(page))[0][0], before, "the timeline too");
  });

  on("train_mlp.html", `has contrast enough in the ${scheme}`, { scheme }, async (page) => {
    const ratios = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const hex = style.getPropertyValue(`--${name}`).trim().slice(1);
        const full = hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex;
        const parts = [0, 2, 4].map((i) => parseInt(full.slice(i, i + 2), 16) / 255);
        const [r, g, b] = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
      const pairs = ["ink", "muted", "false", "unknown", "true", "accent"].flatMap((name) => [[name, "surface"], [name, "ground"]]);
      pairs.push(["muted", "sunken"], ["ink", "unknown-tint"], ["ink", "add"], ["ink", "remove"]);
      pairs.push(...["false", "unknown", "true"].map((name) => [`${name}-on`, `${name}-fill`]));
      // The timeline takes whichever of two is read better.
      const named = ["kernel-0", "kernel-1", "kernel-2", "kernel-3", "copy", "memset"];
      return [...pairs.map(([a, b]) => [`${a} on ${b}`, ratio(a, b)]),
        ...named.map((name) => [`a name on ${name}`, Math.max(ratio("surface", name), ratio("ink", name))])];
    });
    for (const [pair, ratio] of ratios) assert.ok(ratio >= 4.5, `${pair}: ${ratio.toFixed(2)}`);
  });
}

// Since Chromium 148, keys begin at an opened site.
on("train_mlp.html", "begins with a way to the sites", {}, async (page) => {
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "sites");
});

on("train_mlp.html", "is made for keys and for screen readers", { hash: "#open=S2" }, async (page) => {
  const wrong = await page.evaluate(() => {
    const name = (node) => (node.getAttribute("aria-label") ?? node.textContent).trim();
    const shown = (node) => node.getClientRects().length > 0;
    return {
      headers: [...document.querySelectorAll("th")].filter((th) => !th.scope).length,
      tables: [...document.querySelectorAll("table")].filter((table) => !table.caption).length,
      buttons: [...document.querySelectorAll("button")].filter((button) => shown(button) && !name(button)).length,
      drawings: [...document.querySelectorAll("figure svg")].filter((image) => !image.getAttribute("aria-label")).length,
      sections: [...document.querySelectorAll("main > section")].filter((one) => !byLabel(one)).length,
    };
    function byLabel(one) {
      return document.getElementById(one.getAttribute("aria-labelledby"))?.textContent.trim();
    }
  });
  assert.deepEqual(wrong, { headers: 0, tables: 0, buttons: 0, drawings: 0, sections: 0 });
  const canvas = await page.getAttribute("canvas", "aria-label");
  assert.match(canvas, /1 GPU stream, 2 host threads, 212 waits/);
  await page.focus("#site-S3 button.open");
  await page.keyboard.press("Enter");
  assert.ok(await page.$("#detail-S3"), "Enter opens");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, "none", "focus is seen");
});

for (const file of ["train_mlp.html", "ranks.html", "diff.html"]) {
  for (const [width, scheme] of [[1400, "light"], [1400, "dark"], [420, "light"]]) {
    on(file, `breaks no rule of axe-core, ${width} pixels, ${scheme}`, { width, scheme, hash: "#open=S1,S2,C1,C3" }, async (page) => {
      await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
      await page.click(".fold");
      await page.evaluate(axe.source);
      const broken = await page.evaluate(async () => (await window.axe.run()).violations.map(({ id, nodes }) => [id, nodes[0].html]));
      assert.deepEqual(broken, []);
    });
  }
}

on("ranks.html", "folds lanes, and unfolds them for what is chosen", { hash: "#open=S1" }, async (page) => {
  const height = () => page.$eval("canvas", (canvas) => canvas.clientHeight);
  const buttons = () => page.$$eval(".fold", (list) => list.filter((one) => !one.hidden).map((one) => [one.ariaLabel, one.ariaExpanded]));
  const [all, unfolded] = [await height(), await buttons()];
  assert.deepEqual(unfolded[0], ["train_mlp_shapes.sqlite", "true"]);
  assert.ok(unfolded.every(([name, expanded]) => name && expanded === "true"));
  await page.focus(".fold");
  await page.keyboard.press("Enter");
  assert.ok((await height()) < all);
  assert.equal((await buttons())[0][1], "false");
  assert.ok((await buttons()).length < unfolded.length, "what is inside has no headings either");
  assert.equal(await page.evaluate(() => document.activeElement.className), "fold", "focus stays");
  await drawn(page);
  assert.ok((await colours(page)).some(([colour]) => colour === 0xe2571e), "its waits show");
  await page.fill('input[aria-label^="Find a kernel"]', "S1");
  await page.keyboard.press("Enter");
  assert.equal(await height(), all, "a match unfolds");
  await page.click(".fold");
  await page.click("#detail-S1 button.jump");
  assert.equal(await height(), all, "a wait unfolds");
  assert.deepEqual(await buttons(), unfolded);
});

for (const file of ["train_mlp.html", "ranks.html", "hostile.html", "diff.html"]) {
  for (const width of [320, 800, 1600]) {
    on(file, `fits ${width} pixels`, { width, hash: "#open=S2,S2,C1,C3" }, async (page) => {
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out");
      assert.ok((await colours(page)).length > 5);
    });
  }
}

on("ranks.html", "draws captures above each other", {}, async (page) => {
  assert.match(await page.getAttribute("canvas", "aria-label"), /train_mlp_shapes\.sqlite: .*; train_mlp_python_sampling\.sqlite: /);
  const last = await page.$$eval("tr.site", (rows) => rows.map((row) => row.textContent).findIndex((row) => row.includes("python_sampling")));
  assert.ok(last >= 0, "sites say whose they are");
  const id = (await ids(page))[last];
  await page.click(`#site-${id} button.open`);
  await page.click(`#detail-${id} button.jump`);
  assert.equal((await view(page)).selected, id, "an example is shown in its own capture");
});

for (const file of ["moment.html", "ages.html"]) {
  on(file, "stands times that no capture has", {}, async (page) => {
    assert.equal((await ids(page)).length, 1);
    await page.focus("canvas");
    for (const key of ["w", "w", "d", "s", "n", "Home"]) await page.keyboard.press(key);
    assert.ok((await view(page)).length > 0);
    const box = await inView(page);
    for (let y = 0; y < box.height; y += 10) await page.mouse.move(box.x + 300 + y, box.y + y);
  });
}

on("diff.html", "shows what changed", { hash: "#open=C3" }, async (page) => {
  assert.equal(await text(page, "h1"), "1 new, 1 gone, 1 changed");
  assert.deepEqual(await page.$$eval("#classes tbody tr:nth-child(3) > *", (cells) => cells.slice(0, 3).map((cell) => cell.textContent)), ["waits", "3", "4"]);
  const status = () => page.$$eval("tr.site", (rows) => rows.map((row) => row.className.replace(/site | is-open/g, "")));
  assert.deepEqual(await status(), ["new", "gone", "changed", "same"]);
  await page.click("label.chip.same");
  assert.deepEqual(await status(), ["new", "gone", "changed"]);
  await page.click("label.chip.same");
  await page.click('table.sites thead button:has-text("Waits")');
  assert.equal((await status()).pop(), "same", "the least difference comes last");
  const detail = await text(page, "#detail-C3");
  assert.ok(detail.includes("Before") && detail.includes("After") && detail.includes("train.py:31 step"));
  assert.equal(await text(page, "#site-C3 .col-waits"), "1 → 2");
});

on("diff.html", "lays an iteration of either capture above the other", {}, async (page) => {
  const start = (side, number) => page.evaluate(([side, number]) => {
    const timeline = JSON.parse(document.getElementById("data").textContent).timelines[side];
    const bytes = Uint8Array.from(atob(timeline.iterations.packed), (one) => one.charCodeAt(0));
    const numbers = [];
    for (let at = 0; at < bytes.length; ) {
      let value = 0;
      for (let scale = 1; ; scale *= 128) {
        const byte = bytes[at++];
        value += (byte & 127) * scale;
        if (byte < 128) break;
      }
      numbers.push(value);
    }
    return numbers.filter((_, i) => i % 2 === 0).slice(0, number).reduce((sum, one) => sum + one, 0);
  }, [side, number]);
  const input = 'input[aria-label="Align at iteration"]';
  assert.equal(await page.inputValue(input), "5");
  const near = await view(page);
  assert.ok(near.from < 0 && near.to > 0, "it begins at the iteration's start");
  await page.focus("canvas");
  await page.keyboard.press("]");
  await drawn(page);
  assert.equal(await page.inputValue(input), "6");
  assert.deepEqual(await view(page), near, "the window stays, the captures move under it");
  await page.keyboard.press("Home");
  const whole = await view(page);
  // The axis begins with the earlier capture.
  assert.equal(whole.from, -Math.max(await start(0, 6), await start(1, 6)));
  assert.match(await text(page, ".status"), /before the start of iteration 6/);
  await page.fill(input, "999");
  assert.deepEqual(await view(page), whole, "there is no such iteration");
});

on("diff.html", "shows a site on either side", { hash: "#open=C3" }, async (page) => {
  const buttons = await page.$$("#detail-C3 button.quiet");
  assert.equal(buttons.length, 2);
  await buttons[1].click();
  const after = await view(page);
  assert.ok(after.selected.startsWith("S"));
  assert.match(await text(page, ".unseen[role=status]:not(.count)"), /train\.py:31 step/);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.closest("tr").id), "site-C3");
});

on("hostile_diff.html", "shows names as text and runs none", { hash: "#open=C1,C2" }, async (page) => {
  assert.deepEqual(await page.evaluate(() => [document.images.length, document.scripts.length]), [0, 2]);
  assert.ok((await text(page, "#sites-body")).includes("</script><script>attack(2)"));
});

on("patterns.html", "lists 20 sites and says how many more there are", {}, async (page) => {
  assert.ok((await ids(page)).length > 6);
  assert.ok(await page.$$eval("tr.site .tag, footer p", (nodes) => nodes.length > 0));
});

on("hostile.html", "shows names as text and runs none", { hash: "#open=S2,S2" }, async (page) => {
  const there = await page.evaluate(() => ({
    images: document.images.length,
    scripts: document.scripts.length,
    handlers: document.querySelectorAll("[onerror], [onload], [onmouseover]").length,
    links: document.querySelectorAll("a[href]:not(.skip)").length,
    text: document.body.innerText,
  }));
  assert.deepEqual([there.images, there.scripts, there.handlers, there.links], [0, 2, 0, 0]);
  assert.ok(there.text.includes("<img src=x onerror=attack(1)>") && there.text.includes("</script><script>attack(2)"));
  assert.ok(!/[\u202e\u2028\u001b]/.test(there.text), "nothing that reorders or breaks lines");
  const box = await inView(page);
  for (let y = 60; y < box.height; y += 8) await page.mouse.move(box.x + 200 + y, box.y + y);
  await page.fill('input[aria-label^="Find a kernel"]', "<script>");
  await page.fill('input[aria-label="Filter the sites"]', "<img src=x onerror=attack(9)>");
});

test("train_mlp.html: its policy stops scripts, styles and requests", { timeout: 180000 }, async () => {
  const page = await open(browser, "train_mlp.html");
  await page.evaluate(async () => {
    const add = (tag, more) => document.body.append(Object.assign(document.createElement(tag), more));
    add("script", { textContent: "window.attacks.push('script')" });
    add("style", { textContent: "body { display: none }" });
    add("img", { src: "data:image/gif;base64,R0lGODlhAQABAAAAACw=", onload: () => window.attacks.push("image") });
    add("div", {}).innerHTML = undefined;
    document.body.insertAdjacentHTML("beforeend", "<p onclick='window.attacks.push(1)' id='inline'>x</p>");
    document.getElementById("inline").click();
    await fetch("data:text/plain,x").then(() => window.attacks.push("request"), () => {});
  }).catch(() => {});
  await page.waitForTimeout(200);
  assert.deepEqual(await page.evaluate(() => window.attacks), []);
  const stopped = await page.evaluate(() => window.violations.map((one) => one.replace(/-(elem|attr)$/, "")));
  for (const directive of ["script-src", "style-src", "img-src"]) assert.ok(stopped.includes(directive), `${directive}: ${stopped}`);
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).display), "none");
  await page.context().close();
});

on("train_mlp.html", "prints the table and what is open", { hash: "#open=S2", scheme: "dark" }, async (page) => {
  await page.emulateMedia({ media: "print" });
  const shown = (selector) => page.$eval(selector, (node) => node.getClientRects().length > 0);
  for (const selector of ["table.sites", "#detail-S2", "h1"]) assert.ok(await shown(selector), selector);
  for (const selector of [".tools", ".filters", "#theme"]) assert.ok(!(await shown(selector)), selector);
  const paper = await page.pdf({ format: "A4" });
  assert.ok(paper.length > 20000);
  await drawn(page);
});

test("times are written as in the other formats", () => {
  const source = readFileSync(new URL("../../src/render/html/app/format.js", import.meta.url), "utf8");
  const { duration, timestamp } = new Function(`${source}; return { duration, timestamp };`)();
  const words = JSON.parse(readFileSync(join(process.env.PAGES, "times.json"), "utf8"));
  assert.ok(words.length > 100);
  for (const [ns, length, at] of words) assert.deepEqual([duration(ns), timestamp(ns)], [length, at], String(ns));
});
