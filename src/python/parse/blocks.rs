//! Blocks that may run or not, and loops, around a place in a scope.

use super::nodes::{self, Node, within};
use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged, TextRange};

/// A block that may run or not, and which arm of its statement it is: (range of the statement, arm).
pub type Block = (TextRange, TextRange);

/// The blocks that may or may not run around the last node, outermost first, below `path[depth]`.
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

/// Whether two places stand in different arms of one `if` or `match`.
pub fn exclusive(a: &[Block], b: &[Block]) -> bool {
    a.iter().any(|(statement, arm)| b.iter().any(|(other, second)| statement == other && arm != second))
}

/// Whether the block of the definition ends the function before control can get to `to`: `if debug: v = …; return`.
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

/// Ranges of the loops around the last node, below `path[depth]`, and of what they repeat: what a `for` iterates over is asked
/// for once.
pub fn loops<'p>(path: &'p [Node<'_>], depth: usize) -> impl Iterator<Item = (TextRange, TextRange)> + 'p {
    path.iter().skip(depth + 1).filter_map(|node| match node {
        Node::StmtFor(ast) => Some((ast.range, TextRange::new(ast.iter.end(), ast.range.end()))),
        Node::StmtWhile(ast) => Some((ast.range, ast.range)),
        _ => None,
    })
}
