// A table that is sorted by any column and filtered by text and kind, and whose rows open.

class Table {
  /**
   * `spec`: `items` with an `id` each; `columns` with `key`, `label`, `title`, `value` to sort by, `cell` to show, whether they
   * are `number`s and sort `down` first; `chips`: names that `chipOf` gives an item; `words` to search in; `detail` of an item;
   * `caption`, `placeholder`, `noun`. `onChange`: something was opened or closed.
   */
  constructor(host, spec, onChange) {
    this.spec = spec;
    this.onChange = onChange;
    this.order = { key: null, down: false }; // as the report ranks them
    this.wanted = new Set(spec.chips);
    this.rows = new Map();
    host.append(this.filters(), this.table());
    this.update();
  }

  filters() {
    const { spec } = this;
    this.text = el("input", {
      type: "search", placeholder: spec.placeholder, "aria-label": `Filter the ${spec.noun}s`, spellcheck: "false",
      oninput: () => this.update(),
    });
    const count = (name) => spec.items.filter((item) => spec.chipOf(item) === name).length;
    const box = (name) => el("label", { class: `chip ${name}` },
      el("input", {
        type: "checkbox", checked: true, value: name,
        onchange: (event) => {
          this.wanted[event.target.checked ? "add" : "delete"](name);
          this.update();
        },
      }),
      classMark(name), ` ${VERDICT[name] ?? name} `, el("span", { class: "count" }, String(count(name))));
    this.shown = el("span", { class: "count", role: "status", "aria-live": "polite" });
    return el("div", { class: "filters" }, this.text,
      el("fieldset", {}, el("legend", { class: "unseen" }, "Shown"), spec.chips.map(box)), this.shown);
  }

  table() {
    // Roles are explicit: a narrow screen lays rows out as cards, which some browsers no longer take for a table.
    this.heads = this.spec.columns.map((column) => el("th", { role: "columnheader", scope: "col", class: `col-${column.key}${column.number ? " num" : ""}` },
      el("button", { type: "button", title: column.title, onclick: () => this.sort(column) },
        column.label, el("span", { class: "arrow", "aria-hidden": "true" }))));
    this.body = el("tbody", { role: "rowgroup" });
    return el("div", { class: "scroll" }, el("table", { role: "table", class: `sites ${this.spec.noun}s` },
      el("caption", { class: "unseen" }, this.spec.caption),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, this.heads)), this.body));
  }

  sort(column) {
    const same = this.order.key === column.key;
    this.order = { key: column.key, down: same ? !this.order.down : Boolean(column.down) };
    this.update();
  }

  matches(item) {
    const text = this.text.value.trim().toLowerCase();
    return this.wanted.has(this.spec.chipOf(item)) &&
      (!text || this.spec.words(item).some((word) => word.toLowerCase().includes(text)));
  }

  update() {
    const { items, columns, noun } = this.spec;
    const value = columns.find(({ key }) => key === this.order.key)?.value ?? (() => 0);
    const sign = this.order.down ? -1 : 1;
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    const rank = new Map(items.map((item, i) => [item, i]));
    const shown = items.filter((item) => this.matches(item))
      .sort((a, b) => sign * compare(value(a), value(b)) || rank.get(a) - rank.get(b));
    this.body.replaceChildren(...shown.flatMap((item) => this.rowsOf(item)));
    if (!shown.length) {
      this.body.append(el("tr", { role: "row" }, el("td", { role: "cell", colspan: columns.length, class: "none" }, `No ${noun} passes the filter.`)));
    }
    columns.forEach(({ key }, i) => {
      const here = key === this.order.key;
      if (here) this.heads[i].setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
      else this.heads[i].removeAttribute("aria-sort");
    });
    this.shown.textContent = shown.length < items.length ? `${shown.length} of ${counted(items.length, noun)}` : "";
  }

  /** The row of an item and, where it is open, that of its details. */
  rowsOf(item) {
    let row = this.rows.get(item.id);
    if (!row) {
      row = this.row(item);
      this.rows.set(item.id, row);
    }
    return row.open ? [row.node, row.open] : [row.node];
  }

  row(item) {
    const { columns, chipOf } = this.spec;
    const button = el("button", {
      type: "button", class: "open", "aria-expanded": "false", "aria-controls": `detail-${item.id}`,
      onclick: (event) => {
        event.stopPropagation();
        this.toggle(item);
      },
    }, el("span", { class: "twist", "aria-hidden": "true" }), columns[0].cell(item), el("span", { class: "unseen" }, " details"));
    const cell = ({ key, label, number, cell: content }, i) => el(i ? "td" : "th", {
      role: i ? "cell" : "rowheader",
      class: `col-${key}${number ? " num" : ""}`,
      scope: i ? null : "row",
      "data-label": number ? label : null,
    }, i ? content(item) : button);
    const node = el("tr", {
      role: "row",
      class: `site ${chipOf(item)}`, id: `site-${item.id}`,
      onclick: () => {
        if (String(getSelection()) === "") this.toggle(item);
      },
    }, columns.map(cell));
    return { node, button, open: null };
  }

  isOpen(item) {
    return Boolean(this.rows.get(item.id)?.open);
  }

  toggle({ id }, wanted = !this.isOpen({ id })) {
    const item = this.spec.items.find((one) => one.id === id);
    const row = this.rows.get(id);
    if (!row || wanted === this.isOpen(item)) return;
    if (wanted) {
      row.open = el("tr", { role: "row", class: "opened", id: `detail-${item.id}` },
        el("td", { role: "cell", colspan: this.spec.columns.length }, this.spec.detail(item)));
      row.node.after(row.open);
    } else {
      row.open.remove();
      row.open = null;
    }
    row.node.classList.toggle("is-open", wanted);
    row.button.setAttribute("aria-expanded", String(wanted));
    this.onChange();
  }

  /** Opens an item, whatever the filter, and goes there. */
  reveal(id) {
    const item = this.spec.items.find((one) => one.id === id);
    if (!item) return;
    if (!this.matches(item)) {
      this.text.value = "";
      this.wanted = new Set(this.spec.chips);
      this.text.parentElement.querySelectorAll(".chip input").forEach((box) => (box.checked = true));
      this.update();
    }
    this.toggle(item, true);
    const { node, button } = this.rows.get(id);
    node.scrollIntoView({ block: "start" });
    button.focus({ preventScroll: true });
  }

  get open() {
    return this.spec.items.filter((item) => this.isOpen(item)).map((item) => item.id);
  }
}
