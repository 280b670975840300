// How large a page is, how soon it is ready, and how long a frame takes while zooming in and out.
//
//   CHROMIUM=$(command -v chromium) node tests/browser/measure.mjs REPORT.html

import { statSync } from "node:fs";
import { resolve } from "node:path";
import { launch, open } from "./browser.mjs";

const file = process.argv[2];
const browser = await launch();
process.env.PAGES = "/";
const page = await open(browser, resolve(file));
const ready = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
// Three places, each from the whole capture to where single calls are seen and back, a frame for each turn of the wheel.
const measured = await page.evaluate(async () => {
  const canvas = document.querySelector("canvas");
  canvas.focus();
  const { left, top, width } = canvas.getBoundingClientRect();
  const frames = [];
  const draws = [];
  let last = performance.now();
  for (const place of [0.3, 0.5, 0.8]) {
    for (const deltaY of [-120, 120]) {
      for (let i = 0; i < 30; i++) {
        canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX: left + place * width, clientY: top + 100, cancelable: true }));
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        frames.push(now - last);
        draws.push(Number(canvas.dataset.drawMs));
        last = now;
      }
    }
  }
  return { frames, draws };
});
await browser.close();

const line = (times) => {
  const sorted = times.slice(1).sort((a, b) => a - b);
  const at = (part) => sorted[Math.floor(part * (sorted.length - 1))].toFixed(1);
  return `median ${at(0.5)} ms, 95 of 100 within ${at(0.95)} ms, longest ${at(1)} ms`;
};
console.log(`size   ${(statSync(file).size / 1e6).toFixed(2)} MB`);
console.log(`ready  ${Math.round(ready)} ms after navigation began`);
console.log(`frame  ${line(measured.frames)}`);
console.log(`draw   ${line(measured.draws)}`);
