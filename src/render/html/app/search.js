// Search in the timeline: kernels, calls, sites.

class Search {
  constructor(timeline) {
    this.timeline = timeline;
    this.count = el("span", { class: "count", role: "status", "aria-live": "polite" });
    this.input = el("input", {
      type: "search",
      placeholder: "Find a kernel, call or site",
      "aria-label": "Find a kernel, call or site in the timeline",
      spellcheck: "false",
      oninput: () => this.find(),
      onkeydown: (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        this.go(event.shiftKey ? -1 : 1);
      },
    });
    const button = (label, direction, sign) =>
      el("button", { type: "button", class: "quiet", "aria-label": label, onclick: () => this.go(direction) }, sign);
    this.node = el("div", { class: "search" }, this.input, button("match before", -1, "↑"), button("next match", 1, "↓"), this.count);
  }

  /** Marks matches, and counts those kept in the drawing. */
  find() {
    const wanted = this.input.value.trim().toLowerCase();
    const { timeline } = this;
    timeline.matches = null;
    this.last = null;
    this.count.textContent = "";
    if (wanted) {
      const holds = (text) => text.toLowerCase().includes(wanted);
      timeline.matches = new Map(timeline.tracks.map((track) => [track, {
        names: track.model.names.map(holds),
        sites: track.model.sites.map((site) =>
          (site.id ?? "").toLowerCase() === wanted || holds(timeline.describe(track, site))),
      }]));
      const found = this.all().length;
      this.count.textContent = found ? counted(found, "match").replace("matchs", "matches") : "no match";
    }
    timeline.request();
  }

  /** All matches in order of time: start and end on the axis, capture, index of the lane. */
  all() {
    const { timeline } = this;
    const list = [];
    for (const [track, found] of timeline.matches ?? []) {
      const { lanes, waits } = track.model;
      const add = (start, end, lane) => list.push([start - track.offset, end - track.offset, track, lane]);
      lanes.forEach((lane, index) => {
        for (let i = 0; i < lane.start.length; i++) if (found.names[lane.name[i]]) add(lane.start[i], lane.end[i], index);
      });
      for (let i = 0; i < waits.length; i++) if (found.sites[waits.site[i]]) add(waits.start[i], waits.end[i], waits.lane[i]);
    }
    return list.sort((a, b) => a[0] - b[0]);
  }

  /** Brings the next match, or the one before, to the middle. */
  go(direction) {
    const { timeline } = this;
    const all = this.all();
    if (!all.length) return;
    const { from, to } = timeline.target;
    const centre = this.last ?? (from + to) / 2;
    const next = direction > 0
      ? (all.find(([start]) => start > centre) ?? all[0])
      : (all.findLast(([start]) => start < centre) ?? all[all.length - 1]);
    this.last = next[0];
    timeline.unfold(next[2], [next[3]]);
    // Near enough to see the match, no farther than the reader was.
    const half = Math.min((to - from) / 2, Math.max((next[1] - next[0]) * 20, 50000));
    const middle = (next[0] + next[1]) / 2;
    timeline.show(middle - half, middle + half, true);
  }
}
