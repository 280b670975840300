// The table of sites: sorted by any column, filtered by text and class, each row opens.

const COLUMNS = [
  { key: "id", label: "Site", title: "rank in the report", value: (site) => Number(site.id.slice(1)) || 0 },
  { key: "verdict", label: "Verdict", title: "class, kind, how sure", value: (site) => ["false", "unknown", "true"].indexOf(site.class) * 2 - site.sort.confidence },
  { key: "place", label: "Where", title: "file and line", value: (site) => `${site.place[0]} ${site.place[1]}` },
  { key: "waits", label: "Waits", title: "number of waits; below, per iteration", down: true, value: (site) => site.sort.waits },
  { key: "saves", label: "Saves", title: "time by which the run would be shorter", down: true, value: (site) => site.sort.saves_ns },
  { key: "blocked", label: "Blocked", title: "host time inside the waits; below, share of the thread's time", down: true, value: (site) => site.sort.blocked_ns },
  { key: "p99", label: "p99", title: "99 of 100 waits are no longer", down: true, value: (site) => site.sort.p99_ns },
  { key: "drain", label: "Drain", title: "GPU idle after the waits; below, share of the GPU's time", down: true, value: (site) => site.sort.drain_ns },
];

const NUMBERS = new Set(["waits", "saves", "blocked", "p99", "drain"]);

class Sites {
  constructor(host, sites, { timeline, onChange }) {
    Object.assign(this, { sites, timeline, onChange });
    this.order = { key: "id", down: false };
    this.classes = new Set(CLASSES);
    this.columns = COLUMNS.filter(({ key }) => key !== "saves" || sites.some((site) => site.cells.saves));
    this.rows = new Map();
    host.append(this.filters(), this.table());
    this.update();
  }

  filters() {
    this.text = el("input", {
      type: "search", placeholder: "Filter by file, function, API, advice", "aria-label": "Filter the sites", spellcheck: "false",
      oninput: () => this.update(),
    });
    const count = (name) => this.sites.filter((site) => site.class === name).length;
    const box = (name) => el("label", { class: `chip ${name}` },
      el("input", {
        type: "checkbox", checked: true, value: name,
        onchange: (event) => {
          this.classes[event.target.checked ? "add" : "delete"](name);
          this.update();
        },
      }),
      classMark(name), ` ${name} `, el("span", { class: "count" }, String(count(name))));
    this.shown = el("span", { class: "count", role: "status", "aria-live": "polite" });
    return el("div", { class: "filters" }, this.text,
      el("fieldset", {}, el("legend", { class: "unseen" }, "Classes"), ["false", "unknown", "true"].map(box)), this.shown);
  }

  table() {
    // The roles are said because a narrow screen lays rows out as cards, which ends being a table for browsers.
    this.heads = this.columns.map((column) => el("th", { role: "columnheader", scope: "col", class: `col-${column.key}` },
      el("button", { type: "button", title: column.title, onclick: () => this.sort(column) },
        column.label, el("span", { class: "arrow", "aria-hidden": "true" }))));
    this.body = el("tbody", { role: "rowgroup" });
    return el("div", { class: "scroll" }, el("table", { role: "table", class: "sites" },
      el("caption", { class: "unseen" }, "Call sites that wait for the GPU; a row opens to its details"),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, this.heads)), this.body));
  }

  sort(column) {
    const same = this.order.key === column.key;
    this.order = { key: column.key, down: same ? !this.order.down : Boolean(column.down) };
    this.update();
  }

  matches(site) {
    const text = this.text.value.trim().toLowerCase();
    const words = [site.id, site.class, site.kind, site.call, site.api, site.advice, ...site.place, ...site.who,
      ...site.stack.flatMap((frame) => [frame.file, frame.function])];
    return this.classes.has(site.class) && (!text || words.some((word) => word.toLowerCase().includes(text)));
  }

  update() {
    const { value } = COLUMNS.find(({ key }) => key === this.order.key);
    const sign = this.order.down ? -1 : 1;
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    const rank = new Map(this.sites.map((site, i) => [site, i]));
    const shown = this.sites.filter((site) => this.matches(site))
      .sort((a, b) => sign * compare(value(a), value(b)) || rank.get(a) - rank.get(b));
    this.body.replaceChildren(...shown.flatMap((site) => this.rowsOf(site)));
    if (!shown.length) {
      this.body.append(el("tr", { role: "row" }, el("td", { role: "cell", colspan: this.columns.length, class: "none" }, "No site passes the filter.")));
    }
    this.columns.forEach(({ key }, i) => {
      const here = key === this.order.key;
      if (here) this.heads[i].setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
      else this.heads[i].removeAttribute("aria-sort");
    });
    this.shown.textContent = shown.length < this.sites.length ? `${shown.length} of ${counted(this.sites.length, "site")}` : "";
  }

  /** The row of a site and, where it is open, that of its details. */
  rowsOf(site) {
    let row = this.rows.get(site.id);
    if (!row) {
      row = this.row(site);
      this.rows.set(site.id, row);
    }
    return row.open ? [row.node, row.open] : [row.node];
  }

  row(site) {
    const button = el("button", {
      type: "button", class: "open", "aria-expanded": "false", "aria-controls": `detail-${site.id}`, "aria-label": `${site.id} details`,
      onclick: (event) => {
        event.stopPropagation();
        this.toggle(site);
      },
    }, el("span", { class: "twist", "aria-hidden": "true" }), site.id);
    const [file, name, mark] = site.place;
    const { cells } = site;
    const two = (first, second) => [first, second ? el("span", { class: "sub" }, second) : null];
    const content = {
      id: button,
      verdict: [el("span", { class: `verdict ${site.class}` }, classMark(site.class), site.class, " ", el("span", { class: "sure" }, site.confidence)), el("span", { class: "sub" }, site.kind)],
      place: [
        file ? el("span", { class: "file" }, file) : null, file ? " " : null, el("span", { class: "name" }, name),
        mark ? el("span", { class: "tag" }, mark) : null,
        el("span", { class: "sub" }, [site.call, ...site.who].join(", ")),
        site.advice ? el("span", { class: "todo" }, "→ ", site.advice) : null,
      ],
      waits: two(cells.waits, cells.per_iteration ? `${cells.per_iteration} / iter` : null),
      saves: cells.saves ?? "",
      blocked: two(...cells.blocked),
      p99: cells.p99,
      drain: two(...cells.drain),
    };
    const cell = ({ key, label }) => el(key === "id" ? "th" : "td", {
      role: key === "id" ? "rowheader" : "cell",
      class: `col-${key}${NUMBERS.has(key) ? " num" : ""}`,
      scope: key === "id" ? "row" : null,
      "data-label": NUMBERS.has(key) ? label : null,
    }, content[key]);
    const node = el("tr", {
      role: "row",
      class: `site ${site.class}`, id: `site-${site.id}`,
      onclick: () => {
        if (String(getSelection()) === "") this.toggle(site);
      },
    }, this.columns.map(cell));
    return { node, button, open: null };
  }

  isOpen(site) {
    return Boolean(this.rows.get(site.id)?.open);
  }

  toggle(site, wanted = !this.isOpen(site)) {
    const row = this.rows.get(site.id);
    if (!row || wanted === this.isOpen(site)) return;
    if (wanted) {
      row.open = el("tr", { role: "row", class: "opened", id: `detail-${site.id}` },
        el("td", { role: "cell", colspan: this.columns.length }, detail(site, this.timeline)));
      row.node.after(row.open);
    } else {
      row.open.remove();
      row.open = null;
    }
    row.node.classList.toggle("is-open", wanted);
    row.button.setAttribute("aria-expanded", String(wanted));
    this.onChange();
  }

  /** Opens a site, whatever the filter, and goes there. */
  reveal(id) {
    const site = this.sites.find((one) => one.id === id);
    if (!site) return;
    if (!this.matches(site)) {
      this.text.value = "";
      this.classes = new Set(CLASSES);
      this.body.closest("section").querySelectorAll(".chip input").forEach((box) => (box.checked = true));
      this.update();
    }
    this.toggle(site, true);
    const { node, button } = this.rows.get(id);
    node.scrollIntoView({ block: "start" });
    button.focus({ preventScroll: true });
  }

  get open() {
    return this.sites.filter((site) => this.isOpen(site)).map((site) => site.id);
  }
}
