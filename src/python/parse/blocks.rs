//! Blocks that may or may not run, and loops, around a place in a scope.

use super::nodes::{self, Node, within};
use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged, TextRange};

/// A block that may or may not run: (range of its statement, range of the first statement of its arm).
pub type Block = (TextRange, TextRange);

/// The blocks around the last node that may or may not run, outermost first, below `path[depth]`.
pub fn blocks(path: &[Node<'_>], depth: usize) -> Vec<Block> {
    let block = |at: usize| {
        let below = path[at + 1].range();
        let statement = match path[at] {
            // An `else` arm belongs to its `if`, a handler to its `try`, a case to its `match`.
            Node::ElifElseClause(_) | Node::ExceptHandlerExceptHandler(_) | Node::MatchCase(_) => at - 1,
            Node::StmtIf(_) | Node::StmtFor(_) | Node::StmtWhile(_) | Node::StmtTry(_) => at,
            _ => return None,
        };
        let arm = match path[at] {
            Node::StmtFor(ast) if within(below, &*ast.target) => &ast.body,
            _ => nodes::block(path, at + 1),
        };
        Some((path[statement].range(), arm.first()?.range()))
    };
    (depth + 1..path.len().saturating_sub(1)).filter_map(block).collect()
}

/// Whether two places are in different arms of one statement.
pub fn exclusive(a: &[Block], b: &[Block]) -> bool {
    a.iter().any(|(statement, arm)| b.iter().any(|(other, second)| statement == other && arm != second))
}

/// Whether the definition's block ends the function before control reaches `to`: `if debug: v = …; return`.
pub fn leaves(path: &[Node<'_>], depth: usize, to: &[Block]) -> bool {
    let own = blocks(path, depth);
    let among = |blocks: &[Block], first: TextRange| blocks.iter().any(|(_, arm)| *arm == first);
    (depth + 2..path.len()).filter(|&at| path[at].is_statement()).any(|at| {
        let body = nodes::block(path, at);
        let ends = matches!(body.last(), Some(Stmt::Return(_) | Stmt::Raise(_)));
        let first = body.first().map(Ranged::range).filter(|_| ends);
        first.is_some_and(|first| among(&own, first) && !among(to, first))
    })
}

/// (range of a loop, range of what it repeats), below `path[depth]`. A `for` evaluates its iterable once.
pub fn loops<'p>(path: &'p [Node<'_>], depth: usize) -> impl Iterator<Item = (TextRange, TextRange)> + 'p {
    path.iter().skip(depth + 1).filter_map(|node| match node {
        Node::StmtFor(ast) => Some((ast.range, TextRange::new(ast.iter.end(), ast.range.end()))),
        Node::StmtWhile(ast) => Some((ast.range, ast.range)),
        _ => None,
    })
}
