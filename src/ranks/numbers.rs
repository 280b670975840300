//! Numbers the ranks.
//!
//! The first sign that numbers every process differently wins: `rank` in the names of exports (`rank_3`,
//! `rank3`, `r3`, as `%q{RANK}` in `nsys profile -o` writes them), the rank in the recorded environment, the
//! rank in NCCL's largest communicator if all processes share it, the one number in which names differ
//! (`prof_%q{SLURM_PROCID}`), and the same name rules for the folders of tables. Else ranks are numbered by
//! name, device and process id, and the report says so where signs contradict.

use crate::model::ranks::{NamedBy, Rank};
use crate::model::{Code, ProfileInfo, Warning};
use crate::profile::commands::TRACES;
use crate::text;
use crate::vocabulary::index;
use std::collections::BTreeSet;
use std::path::Path;

index! {
    /// A process of the program: its place in the order of ranks.
    PartyIx
}

#[derive(Clone, Debug)]
pub struct Party {
    /// The report's entry; its clock is set later.
    pub listed: Rank,
    /// Identity of the export: path, host, start.
    pub capture: String,
    /// Folder of the process's tables; empty for an export analysed just now.
    pub folder: String,
    pub profile: ProfileInfo,
    /// First GPU, as the report numbers GPUs.
    pub device: Option<i64>,
    /// Warnings of the source report, as JSON; only on each report's first process.
    pub warnings: String,
}

const LAUNCHERS: [&str; 4] = ["torch.distributed", "accelerate", "deepspeed", "debugpy"];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Number(u64),
    Text(String),
}

/// Sort key of names: `rank_10` comes after `rank_9`.
pub fn natural(name: &str) -> impl Ord + use<> {
    (pieces(name), name.to_owned())
}

fn pieces(name: &str) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for c in name.chars() {
        match (out.last_mut(), c.to_digit(10)) {
            (Some(Piece::Number(n)), Some(digit)) => *n = n.saturating_mul(10).saturating_add(digit.into()),
            (_, Some(digit)) => out.push(Piece::Number(digit.into())),
            (Some(Piece::Text(text)), None) => text.push(c),
            (_, None) => out.push(Piece::Text(c.into())),
        }
    }
    out
}

/// The last part of a path without known suffixes: of exports, light captures and folders.
fn stem(path: &str) -> &str {
    let name = text::path_end(path.trim_end_matches('/'), 1);
    let known = [".sqlite", ".nsys-rep", ".qdrep", "_pqtdir"];
    let name = known.iter().chain(TRACES).find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    name.strip_suffix(".light").unwrap_or(name)
}

/// The number after `rank` or a lone `r`.
fn said(name: &str) -> Option<u32> {
    let pieces = pieces(name);
    let number = |pair: &[Piece]| {
        let [Piece::Text(before), Piece::Number(number)] = pair else { return None };
        let word = before.trim_end_matches(['_', '-', '.', '=']).to_ascii_lowercase();
        let lone =
            word.strip_suffix('r').is_some_and(|rest| rest.is_empty() || rest.ends_with(['_', '-', '.']));
        let local =
            word.ends_with("local_rank") || word.ends_with("localrank") || word.ends_with("node_rank");
        ((word.ends_with("rank") && !local) || lone).then(|| u32::try_from(*number).ok()).flatten()
    };
    pieces.windows(2).find_map(number)
}

/// The one number in which otherwise equal names differ, if small enough for a rank: process ids are not.
fn counted(names: &[&str]) -> Option<Vec<u32>> {
    let all: Vec<Vec<Piece>> = names.iter().map(|name| pieces(name)).collect();
    let first = all.first()?;
    let mut differs = BTreeSet::new();
    for other in &all {
        if other.len() != first.len() {
            return None;
        }
        differs.extend((0..first.len()).filter(|&i| other[i] != first[i]));
    }
    let at = *differs.first().filter(|_| differs.len() == 1)?;
    let number = |pieces: &Vec<Piece>| match pieces[at] {
        Piece::Number(n) if n < 4 * all.len() as u64 => u32::try_from(n).ok(),
        _ => None,
    };
    all.iter().map(number).collect()
}

/// `party`'s rank in its largest communicator, if `other` shares it: two groups count from 0 each.
fn member(party: &Party, other: &Party) -> Option<u32> {
    let of =
        |party: &Party| party.profile.members.iter().find(|member| member.pid == party.listed.pid).cloned();
    let group = of(other)?.communicator;
    of(party).filter(|member| member.communicator == group).map(|member| member.rank)
}

pub fn number(parties: &mut [Party]) {
    parties.sort_by_cached_key(|p| {
        let place = (pieces(stem(&p.profile.path)), pieces(&p.profile.path), pieces(&p.folder));
        (place, p.profile.host.clone(), p.device, p.listed.pid, p.capture.clone())
    });
    let names: Vec<&str> = parties.iter().map(|p| stem(&p.profile.path)).collect();
    let folders: Vec<&str> = parties.iter().map(|p| stem(&p.folder)).collect();
    let each = |of: &dyn Fn(usize) -> Option<u32>| (0..parties.len()).map(of).collect::<Option<Vec<u32>>>();
    let signs = [
        (NamedBy::Name, each(&|i| said(names[i]))),
        (NamedBy::Environment, each(&|i| parties[i].profile.rank)),
        (NamedBy::Communicator, each(&|i| member(&parties[i], parties.first()?))),
        (NamedBy::Name, counted(&names)),
        (NamedBy::Name, each(&|i| said(folders[i]))),
        (NamedBy::Name, counted(&folders)),
    ];
    let unique = |numbers: &Vec<u32>| numbers.iter().collect::<BTreeSet<_>>().len() == numbers.len();
    let found = signs.into_iter().find_map(|(by, numbers)| Some((by, numbers.filter(unique)?)));
    let (by, numbers) = found.unwrap_or_else(|| (NamedBy::Order, (0..parties.len() as u32).collect()));
    for (party, number) in parties.iter_mut().zip(numbers) {
        (party.listed.rank, party.listed.named_by) = (number, by);
    }
    parties.sort_by_key(|party| party.listed.rank);
}

/// Doubts about the given ranks: two exports of one rank, different programs or versions.
pub fn doubts(parties: &[Party]) -> Vec<Warning> {
    [twice(parties), programs(parties), versions(parties)].into_iter().flatten().collect()
}

fn twice(parties: &[Party]) -> Option<Warning> {
    let name = |p: &Party| said(stem(&p.profile.path)).or_else(|| said(stem(&p.folder)));
    for (i, one) in parties.iter().enumerate().filter(|(_, p)| p.listed.named_by == NamedBy::Order) {
        let same = |other: &&Party| name(other) == name(one) && other.capture != one.capture;
        if let (Some(rank), Some(other)) = (name(one), parties[i + 1..].iter().find(same)) {
            let message = format!(
                "{} and {} both name rank {rank}, so ranks are numbered in the order of names; both count",
                one.profile.path, other.profile.path
            );
            return Some(Warning::new(Code::RankTwice, message, ""));
        }
    }
    None
}

/// The script or module that a command line runs; launcher modules are skipped.
fn script(party: &Party) -> Option<&str> {
    let command = party.profile.command.as_deref()?;
    let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    while let Some(word) = words.next() {
        if word.ends_with(".py") {
            return Some(text::path_end(word, 1));
        }
        if word == "-m"
            && let Some(module) =
                words.next().filter(|module| !LAUNCHERS.iter().any(|l| module.starts_with(l)))
        {
            return Some(module);
        }
    }
    None
}

fn programs(parties: &[Party]) -> Option<Warning> {
    let (party, other, usual) = odd_one(parties, script)?;
    let all: BTreeSet<String> = parties.iter().filter_map(script).map(str::to_owned).collect();
    let who = if all.len() == 2 {
        format!("{} (rank {}) is of {other}, other ranks of {usual}", party.profile.path, party.listed.rank)
    } else {
        let all: Vec<String> = all.into_iter().collect();
        format!("the ranks are of {} programs, {}", all.len(), text::first_of(&all, 3))
    };
    let message = format!("{who}: ranks of different programs share no sites, and times over all say little");
    Some(Warning::new(Code::RanksOfPrograms, message, ""))
}

fn versions(parties: &[Party]) -> Option<Warning> {
    odd_one(parties, |p| p.profile.export_version.as_deref()).map(|(party, other, usual)| {
        let (path, rank) = (&party.profile.path, party.listed.rank);
        let message = format!("{path} (rank {rank}) was exported by nsys {other}, other ranks by {usual}");
        Warning::new(Code::RanksOfVersions, message, "")
    })
}

/// The first process with an unusual value, that value, and the usual one.
fn odd_one<'a>(
    parties: &'a [Party],
    of: impl Fn(&'a Party) -> Option<&'a str>,
) -> Option<(&'a Party, &'a str, &'a str)> {
    let values: Vec<&str> = parties.iter().filter_map(&of).collect();
    let count = |value: &str| values.iter().filter(|other| **other == value).count();
    let usual = *values.iter().max_by_key(|value| (count(value), std::cmp::Reverse(**value)))?;
    let odd = parties.iter().find(|p| of(p).is_some_and(|value| value != usual))?;
    Some((odd, of(odd)?, usual))
}

pub fn missing(numbers: &[u32]) -> Option<Warning> {
    let named: Vec<String> = numbers.iter().map(u32::to_string).collect();
    let noun = if numbers.len() == 1 { "rank" } else { "ranks" };
    let message =
        format!("{noun} {} without an export: figures are of the others", text::first_of(&named, 12));
    (!numbers.is_empty()).then(|| Warning::new(Code::RanksMissing, message, ""))
}

/// Merges warnings of many ranks: the first of each code is kept with a count; every damage is kept.
pub fn once(warnings: Vec<Warning>) -> Vec<Warning> {
    let mut said: Vec<(Warning, usize)> = Vec::new();
    for warning in warnings {
        match said.iter_mut().find(|(known, _)| known.code == warning.code && !warning.is_damage()) {
            Some((known, more)) => *more += usize::from(*known != warning),
            None => said.push((warning, 0)),
        }
    }
    let counted = |(warning, more): (Warning, usize)| match more {
        0 => warning,
        more => Warning { message: format!("{} (and {more} more like it)", warning.message), ..warning },
    };
    said.into_iter().map(counted).collect()
}

pub fn unread(path: &Path, error: &anyhow::Error) -> Warning {
    let said = format!("{error:#}");
    let path = path.display().to_string();
    let message = if said.contains(&path) { said } else { format!("{path}: {said}") };
    Warning::new(Code::RankUnreadable, format!("left out: {message}"), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_read_from_names() {
        for (name, rank) in [
            ("rank_3", Some(3)),
            ("prof.rank12", Some(12)),
            ("r7", Some(7)),
            ("train-r07-x", Some(7)),
            ("node2_rank-5", Some(5)),
            ("local_rank_1", None),
            ("server3", None),
            ("report", None),
        ] {
            assert_eq!(said(name), rank, "{name}");
        }
    }

    #[test]
    fn one_number_in_which_names_differ_is_a_rank() {
        assert_eq!(counted(&["prof_2_of_8", "prof_3_of_8"]), Some(vec![2, 3]));
        let one_light = ["runs/prof_0.sqlite", "runs/prof_1.light.sqlite"].map(stem);
        assert_eq!(counted(&one_light), Some(vec![0, 1]));
        assert_eq!(counted(&["n1_p0", "n2_p1"]), None, "two differ");
        assert_eq!(counted(&["pid_31337", "pid_31338"]), None, "process ids");
        assert_eq!(counted(&["a", "a1"]), None);
    }
}
