//! One Python file: decoded, bounded, parsed.

use super::nodes;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{AnyNodeRef, ModModule, PySourceType};
use ruff_python_parser::{Mode, Parsed, lexer, parse_unchecked_source};
use ruff_source_file::{LineIndex, OneIndexed};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::FxHashMap;

/// Brackets open at the same time. CPython itself stops at 200.
const MAX_BRACKETS: usize = 200;
/// Indentation levels. CPython itself stops at 100.
const MAX_INDENTS: usize = 100;
/// Operators, brackets and keywords that can nest in one logical line. A long sum is a left-leaning tree as
/// deep as it has terms. Dropping and walking a tree recurse: the limit keeps both inside a 2 MiB stack.
const MAX_DEPTH: usize = 400;
/// Depth of the tree, statements and expressions together, whatever the tokens promised.
const MAX_NODES: usize = 1000;
const TOO_DEEP: &str = "nested too deeply";

#[derive(Debug)]
pub struct Source {
    text: String,
    parsed: Parsed<ModModule>,
    lines: LineIndex,
    /// Whether `text` is the file byte for byte.
    exact: bool,
    imports: FxHashMap<String, Imported>,
}

/// (dots before the module, full name of the imported thing).
pub type Imported = (u32, String);

impl Source {
    /// Decodes and parses. Text that is not UTF-8 is read as Latin-1, which keeps every ASCII byte and every line where it was.
    /// Syntax errors are no refusal: the parser recovers, and the statements around an error stay readable.
    ///
    /// `Err` is the reason why the file is refused.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, &'static str> {
        if bytes.contains(&0) {
            return Err("binary: it holds NUL bytes");
        }
        let (text, utf8) = match String::from_utf8(bytes) {
            Ok(text) => (text, true),
            Err(error) => (error.into_bytes().iter().map(|&byte| byte as char).collect(), false),
        };
        let (text, exact) = match text.strip_prefix('\u{feff}') {
            Some(rest) => (rest.to_owned(), false),
            None => (text, utf8),
        };
        check_depth(&text)?;
        let parsed = parse_unchecked_source(&text, PySourceType::Python);
        if is_too_deep(parsed.syntax().into()) {
            // Dropping a tree recurses as walking does. Few files are refused, and none twice.
            std::mem::forget(parsed);
            return Err(TOO_DEEP);
        }
        let lines = LineIndex::from_source_text(&text);
        let imports = imports(parsed.syntax().into());
        Ok(Self { text, parsed, lines, exact, imports })
    }

    /// Counts imports inside functions too.
    pub fn imported(&self, name: &str) -> Option<&Imported> {
        self.imports.get(name)
    }

    pub fn module(&self) -> AnyNodeRef<'_> {
        self.parsed.syntax().into()
    }

    /// `None` where the file's bytes differ from the text: not UTF-8, or with a byte-order mark.
    pub fn exact(&self) -> Option<&str> {
        self.exact.then_some(&self.text)
    }

    pub fn whole(&self) -> &str {
        &self.text
    }

    pub fn is_valid(&self) -> bool {
        self.parsed.has_valid_syntax()
    }

    pub fn line_count(&self) -> u32 {
        u32::try_from(self.lines.line_count()).unwrap_or(u32::MAX)
    }

    /// Range of a line without its line break; `None` past the end of the file and for line 0.
    pub fn line_range(&self, line: u32) -> Option<TextRange> {
        let line = OneIndexed::new(usize::try_from(line).ok()?)?;
        if line.get() > self.lines.line_count() {
            return None;
        }
        let range = self.lines.line_range(line, &self.text);
        let text = self.text.get(range.start().to_usize()..range.end().to_usize())?;
        let length = TextSize::of(text.trim_end_matches(['\r', '\n']));
        Some(TextRange::at(range.start(), length))
    }

    /// Without the blanks around the text; empty past the end.
    pub fn line_text(&self, line: u32) -> &str {
        self.line_range(line).map_or("", |range| self.slice(range)).trim()
    }

    /// The line of the offset, from 1.
    pub fn line_of(&self, offset: TextSize) -> u32 {
        u32::try_from(self.lines.line_index(offset).get()).unwrap_or(u32::MAX)
    }

    pub fn slice(&self, range: TextRange) -> &str {
        self.text.get(range.start().to_usize()..range.end().to_usize()).unwrap_or("")
    }

    /// On one line: runs of blanks and line breaks become one space.
    pub fn text(&self, node: impl Ranged) -> String {
        self.slice(node.range()).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn imports(module: AnyNodeRef<'_>) -> FxHashMap<String, Imported> {
    let mut all = FxHashMap::default();
    nodes::walk(&[module], &mut |path| match nodes::last(path) {
        Some(AnyNodeRef::StmtImport(ast)) => {
            for alias in &ast.names {
                // `import a.b` binds `a`, `import a.b as c` binds `c` to `a.b`.
                let module = if alias.asname.is_some() { &*alias.name } else { nodes::root(&alias.name) };
                let name = alias.asname.as_deref().unwrap_or(module);
                all.entry(name.to_owned()).or_insert_with(|| (0, module.to_owned()));
            }
            false
        }
        Some(AnyNodeRef::StmtImportFrom(ast)) => {
            let module = ast.module.as_deref().unwrap_or_default();
            for alias in &ast.names {
                let full = nodes::joined([module, &alias.name]);
                all.entry(nodes::called(alias).to_owned()).or_insert((ast.level, full));
            }
            false
        }
        // Imports are statements: no walk enters expressions.
        node => node.is_some_and(|node| !node.is_expression()),
    });
    all
}

/// Whether a tree is deeper than allowed. The parser itself grows its stack. Where it recovers from an error,
/// it builds other trees than the tokens promise.
fn is_too_deep(module: AnyNodeRef) -> bool {
    let mut deepest = 0;
    nodes::walk(&[module], &mut |path| {
        deepest = deepest.max(path.len());
        deepest <= MAX_NODES
    });
    deepest > MAX_NODES
}

/// Bounds the depth of the tree that the parser would build, from the tokens alone: a deep tree takes gigabytes to be built.
///
/// Every level of an expression costs at least one token that is not a name, a literal or a comma. The number
/// of such tokens since the last comma (at each open bracket, summed) is an upper bound of the depth: `f(a,
/// -b)` counts one for the call and one for the minus. A comma does not end a lambda (`lambda a, b: …`) or a
/// `yield a, b`: both count to the end of their bracket or line. One pass over the tokens, no recursion.
fn check_depth(text: &str) -> Result<(), &'static str> {
    use TokenKind as T;
    let mut lexer = lexer::lex(text, Mode::Module);
    let mut open: Vec<Level> = vec![Level::default()];
    let (mut depth, mut indents) = (0_usize, 0_usize);
    loop {
        let kind = lexer.next_token();
        let top = open.len() - 1;
        match kind {
            T::EndOfFile => return Ok(()),
            T::Indent => indents += 1,
            T::Dedent => indents = indents.saturating_sub(1),
            T::Newline | T::Semi if top == 0 => (open[0], depth) = (Level::default(), 0),
            T::Comma => {
                depth -= open[top].tokens;
                open[top].tokens = 0;
            }
            T::Lpar | T::Lsqb | T::Lbrace | T::FStringStart | T::TStringStart => {
                open[top].tokens += 1;
                depth += 1;
                open.push(Level::default());
            }
            T::Rpar | T::Rsqb | T::Rbrace | T::FStringEnd | T::TStringEnd => {
                if top > 0
                    && let Some(closed) = open.pop()
                {
                    depth -= closed.tokens + closed.over_commas;
                }
            }
            T::Lambda | T::Yield => {
                open[top].over_commas += 1;
                depth += 1;
            }
            kind if nests(kind) => {
                open[top].tokens += 1;
                depth += 1;
            }
            _ => {}
        }
        if open.len() > MAX_BRACKETS || indents > MAX_INDENTS || depth > MAX_DEPTH {
            return Err(TOO_DEEP);
        }
    }
}

/// Nesting tokens in one open bracket: since the last comma, and lambdas and yields, which no comma ends.
#[derive(Default)]
struct Level {
    tokens: usize,
    over_commas: usize,
}

fn nests(kind: TokenKind) -> bool {
    use TokenKind as T;
    let literal = matches!(kind, T::Int | T::Float | T::Complex | T::String | T::None | T::True | T::False)
        || matches!(kind, T::FStringMiddle | T::TStringMiddle | T::Ellipsis);
    !literal && !matches!(kind, T::Name | T::Comment | T::Newline | T::NonLogicalNewline | T::Semi)
}
