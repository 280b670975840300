// Lints the page's scripts and these tests. Names of one file that others use are the type checker's: the page has all files as one
// script.
import js from "@eslint/js";

const rules = { "no-undef": "off", "no-unused-vars": "off", eqeqeq: "error", "no-var": "error", "prefer-const": "error" };

export default [
  js.configs.recommended,
  { files: ["**/*.js"], languageOptions: { sourceType: "script" }, rules },
  // What a browser is sent may hold control characters.
  { files: ["**/*.mjs"], rules: { ...rules, "no-control-regex": "off" } },
];
