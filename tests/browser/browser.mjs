// A headless Chromium that talks to nobody, and pages that report everything that goes wrong in them.

import { chromium } from "playwright-core";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const QUIET = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM, args: QUIET });

/** Opens a report and collects its faults in `page.faults`. */
export async function open(browser, file, { hash = "", width = 1280, height = 900, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.faults = [];
  const url = pathToFileURL(join(process.env.PAGES ?? "", file)).href;
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.faults.push(message.text()));
  page.on("pageerror", (error) => page.faults.push(error.stack));
  page.on("dialog", (dialog) => {
    page.faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== url) page.faults.push(`request: ${request.url()}`);
  });
  await page.addInitScript(() => {
    window.attacks = [];
    window.attack = (which) => window.attacks.push(which);
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
  });
  await page.goto(url + hash);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "yes");
  await drawn(page);
  return page;
}

/** Waits for two frames: one that draws what was asked for, and its end. */
export const drawn = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));

/** Shows the whole timeline and says where: the mouse reaches nothing beyond the window, and focus would scroll. */
export async function inView(page) {
  const canvas = await page.$("canvas");
  await canvas.evaluate((node) => node.scrollIntoView({ block: "center" }));
  await drawn(page);
  return canvas.boundingBox();
}

/** Turns the wheel and waits until the page has got it: a browser delivers it when it next draws, or later. */
export async function wheel(page, by) {
  await page.evaluate(() => {
    window.turned = new Promise((done) => addEventListener("wheel", () => done(), { capture: true, once: true }));
  });
  await page.mouse.wheel(0, by);
  await page.evaluate(() => window.turned);
}

/** The timeline's view, and the selected site. */
export async function view(page) {
  await drawn(page);
  return page.evaluate(() => {
    const { from, to, selected } = document.querySelector("canvas").dataset;
    return { from: Number(from), to: Number(to), length: to - from, selected };
  });
}

/** Colours on the timeline, most frequent first, as [colour, pixels]. */
export const colours = (page) =>
  page.evaluate(() => {
    const canvas = document.querySelector("canvas");
    const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    const ctx = copy.getContext("2d", { willReadFrequently: true });
    ctx.drawImage(canvas, 0, 0);
    const { data } = ctx.getImageData(0, 0, canvas.width, canvas.height);
    const counts = new Map();
    for (let i = 0; i < data.length; i += 4) {
      const colour = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1]);
  });
