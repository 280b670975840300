//! Blocks that may or may not run, and loops, around a place in a scope.

use super::nodes::{self, Node, within};
use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged, TextRange};

/// A block that may or may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    pub statement: TextRange,
    /// Range of its first statement.
    pub arm: TextRange,
    /// Where one arm of this kind runs, no other of the statement does: arms of `if` and `match`, and handlers. The body of a
    /// `try` has run in part before a handler does, and a loop before its `else`.
    pub apart: bool,
}

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
        let apart = !matches!(path[at], Node::StmtFor(_) | Node::StmtWhile(_) | Node::StmtTry(_));
        Some(Block { statement: path[statement].range(), arm: arm.first()?.range(), apart })
    };
    (depth + 1..path.len().saturating_sub(1)).filter_map(block).collect()
}

/// Whether at most one of two places runs: they are in different arms of one statement.
pub fn exclusive(a: &[Block], b: &[Block]) -> bool {
    let excludes = |one: &Block, other: &Block| {
        one.apart && other.apart && one.statement == other.statement && one.arm != other.arm
    };
    a.iter().any(|one| b.iter().any(|other| excludes(one, other)))
}

/// Whether the definition's block ends the function before control reaches `to`: `if debug: v = …; return`.
pub fn leaves(path: &[Node<'_>], depth: usize, to: &[Block]) -> bool {
    let own = blocks(path, depth);
    let among = |blocks: &[Block], first: TextRange| blocks.iter().any(|block| block.arm == first);
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
