// Lints the page's scripts and these tests. The type checker checks names across files: the page joins all into one script.
import js from "@eslint/js";

const rules = { "no-undef": "off", "no-unused-vars": "off", eqeqeq: "error", "no-var": "error", "prefer-const": "error" };

export default [
  js.configs.recommended,
  { files: ["**/*.js"], languageOptions: { sourceType: "script" }, rules },
  // Text for a browser may hold control characters.
  { files: ["**/*.mjs"], rules: { ...rules, "no-control-regex": "off" } },
];
